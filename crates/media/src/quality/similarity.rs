//! PSNR and SSIM of luma planes.

/// What identical frames have: PSNR would be infinite. libvmaf has the same limit for 8 bits.
pub const PSNR_MAX_DB: f64 = 60.0;

/// Peak signal-to-noise ratio of two planes of the same length, in dB.
pub(super) fn psnr_db(one: &[u8], other: &[u8]) -> f64 {
    let square = |(a, b): (&u8, &u8)| u64::from(a.abs_diff(*b)).pow(2);
    let sum: u64 = one.iter().zip(other).map(square).sum();
    if sum == 0 {
        return PSNR_MAX_DB;
    }
    let error = sum as f64 / one.len() as f64;
    (10.0 * (255.0 * 255.0 / error).log10()).min(PSNR_MAX_DB)
}

/// Sums over a block of 4×4 pixels: of both planes, of their squares, of their products.
#[derive(Clone, Copy, Default)]
struct Sums {
    one: u32,
    other: u32,
    squares: u32,
    products: u32,
}

/// Mean structural similarity of two planes of the same length and of whole lines of `width`, at
/// least 8×8; 1 if they are smaller and identical.
pub(super) fn ssim(one: &[u8], other: &[u8], width: u32) -> f64 {
    let width = width as usize;
    let rows = |plane: &[u8]| plane.len() / width.max(1) / 4;
    let (mut above, mut sum, mut count) = (Vec::new(), 0.0, 0_u32);
    for row in 0..rows(one) {
        let lines = row * 4 * width..(row + 1) * 4 * width;
        let below = blocks(&one[lines.clone()], &other[lines], width);
        for (above, below) in above.windows(2).zip(below.windows(2)) {
            sum += window([above[0], above[1], below[0], below[1]]);
            count += 1;
        }
        above = below;
    }
    if count == 0 { f64::from(u8::from(one == other)) } else { sum / f64::from(count) }
}

/// The blocks of four lines.
fn blocks(one: &[u8], other: &[u8], width: usize) -> Vec<Sums> {
    let mut blocks = vec![Sums::default(); width / 4];
    for (one, other) in one.chunks_exact(width).zip(other.chunks_exact(width)) {
        let pixels = one.chunks_exact(4).zip(other.chunks_exact(4));
        for (sums, (one, other)) in blocks.iter_mut().zip(pixels) {
            for (a, b) in one.iter().zip(other) {
                let (a, b) = (u32::from(*a), u32::from(*b));
                sums.one += a;
                sums.other += b;
                sums.squares += a * a + b * b;
                sums.products += a * b;
            }
        }
    }
    blocks
}

/// SSIM of the 64 pixels of four blocks, with the constants (0.01 · 255)² and (0.03 · 255)².
fn window(blocks: [Sums; 4]) -> f64 {
    const PIXELS: f64 = 64.0;
    let total = |of: fn(&Sums) -> u32| f64::from(blocks.iter().map(of).sum::<u32>());
    let (one, other) = (total(|sums| sums.one) / PIXELS, total(|sums| sums.other) / PIXELS);
    let (squares, products) = (total(|sums| sums.squares), total(|sums| sums.products));
    let variances = (squares / PIXELS - one * one - other * other) * PIXELS / (PIXELS - 1.0);
    let covariance = (products / PIXELS - one * other) * PIXELS / (PIXELS - 1.0);
    let (c1, c2) = ((0.01_f64 * 255.0).powi(2), (0.03_f64 * 255.0).powi(2));
    (2.0 * one * other + c1) * (2.0 * covariance + c2)
        / ((one * one + other * other + c1) * (variances + c2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carpet(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * at % 251) as u8).collect()
    }

    #[test]
    fn identical_planes() {
        let plane = carpet(64 * 48);
        assert_eq!(psnr_db(&plane, &plane), PSNR_MAX_DB);
        assert!((ssim(&plane, &plane, 64) - 1.0).abs() < 1e-12);
        assert_eq!(ssim(&plane[..12], &plane[..12], 3), 1.0);
        assert_eq!(ssim(&[], &[], 0), 1.0);
    }

    #[test]
    fn a_known_error_has_a_known_psnr() {
        let (one, other) = (vec![100; 4096], vec![110; 4096]);
        assert!((psnr_db(&one, &other) - 28.130_803_6).abs() < 1e-6);
    }

    /// Flat planes differ in their mean only: (2·a·b + c1) / (a² + b² + c1).
    #[test]
    fn a_known_shift_has_a_known_ssim() {
        let (one, other) = (vec![100; 4096], vec![110; 4096]);
        let c1 = 6.5025;
        let expected = (2.0 * 100.0 * 110.0 + c1) / (100.0 * 100.0 + 110.0 * 110.0 + c1);
        assert!((ssim(&one, &other, 64) - expected).abs() < 1e-9);
        let inverted: Vec<u8> = carpet(4096).iter().map(|value| 255 - value).collect();
        assert!(ssim(&carpet(4096), &inverted, 64) < -0.5);
    }

    /// ffmpeg's own filters say the same of a noisy frame.
    #[test]
    fn as_ffmpeg_has_it() {
        let Ok(ffmpeg) = crate::Ffmpeg::locate() else { return };
        let source = "testsrc2=s=322x182:r=1:d=1,format=gray,split[out0][b];\
                      [b]noise=alls=40:all_seed=7[out1]";
        let dump = |out: &str| {
            let mut command = std::process::Command::new(ffmpeg.path());
            command.args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", source, "-map", out]);
            command.args(["-f", "rawvideo", "-pix_fmt", "gray", "-"]).output().unwrap().stdout
        };
        let (one, other) = (dump("0:0"), dump("0:1"));
        let told = |filter: &str| {
            let mut command = std::process::Command::new(ffmpeg.path());
            command.args(["-nostdin", "-hide_banner", "-f", "lavfi", "-i", source]);
            command.args(["-lavfi", &format!("[0:0][0:1]{filter}"), "-f", "null", "-"]);
            String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned()
        };
        let number = |text: &str, name: &str| -> f64 {
            let rest = &text[text.rfind(name).unwrap() + name.len()..];
            rest.split([' ', '\n']).next().unwrap().parse().unwrap()
        };
        assert_eq!(one.len(), 322 * 182);
        let theirs = number(&told("psnr"), "PSNR y:");
        assert!((psnr_db(&one, &other) - theirs).abs() < 1e-4, "{theirs}");
        let theirs = number(&told("ssim"), "SSIM Y:");
        assert!((ssim(&one, &other, 322) - theirs).abs() < 1e-4, "{theirs}");
    }
}
