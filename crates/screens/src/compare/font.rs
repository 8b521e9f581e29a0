//! Letters made of strokes: a font of our own, so that a video's labels need none from the machine.
//!
//! A glyph is drawn with a round pen on a grid: capitals are ten units high (y = 0 at their top,
//! growing downwards), small letters begin at 3, descenders end at 13.

/// Space between letters, in units.
const SPACING: f32 = 2.4;

/// Width of the blank.
const BLANK: f32 = 3.0;

/// Radius of the pen, in units.
const PEN: f32 = 0.62;

/// Straight pieces that a bend is made of.
const PIECES: u8 = 8;

/// The strokes of each character. Pairs of hexadecimal digits are points (x, y) after a mark of how
/// they are joined. `/` joins them by straight lines; `~` by a quadratic spline from the first to
/// the last, the others being its control points; `o` by a closed one.
const GLYPHS: &[(char, &str)] = &[
    ('A', "/0a306a /1757"),
    ('B', "/000a ~003050555505 ~0535656a3a0a"),
    ('C', "~626000030 70a6a68"),
    ('D', "/000a ~00306063676a3a0a"),
    ('E', "/50000a5a /0545"),
    ('F', "/50000a /0545"),
    ('G', "~62600003070a6a66 /6636"),
    ('H', "/000a /606a /0565"),
    ('I', "/000a"),
    ('J', "~50575a0a08"),
    ('K', "/000a /6006 /246a"),
    ('L', "/000a5a"),
    ('M', "/0a0046808a"),
    ('N', "/0a006a60"),
    ('O', "o006063676a0a0703"),
    ('P', "/000a ~003060663606"),
    ('Q', "o006063676a0a0703 /487c"),
    ('R', "/000a ~003060663606 /366a"),
    ('S', "~62600005656a0a08"),
    ('T', "/0060 /303a"),
    ('U', "~00070a6a6760"),
    ('V', "/003a60"),
    ('W', "/002a436a80"),
    ('X', "/006a /600a"),
    ('Y', "/003560 /353a"),
    ('Z', "/00600a6a"),
    ('a', "o03535a0a /535a"),
    ('b', "/000a o03535a0a"),
    ('c', "~5453030a5a59"),
    ('d', "o03535a0a /505a"),
    ('e', "/0656 ~5653030a5a59"),
    ('f', "~4010131a /0333"),
    ('g', "o03535a0a ~535a5d0d0c"),
    ('h', "/000a ~060353565a"),
    ('i', "/030a /0000"),
    ('j', "~131a1d0d /1010"),
    ('k', "/000a /5308 /265a"),
    ('l', "/000a"),
    ('m', "/030a ~060343464a ~464383868a"),
    ('n', "/030a ~060353565a"),
    ('o', "o03535a0a"),
    ('p', "/030d o03535a0a"),
    ('q', "o03535a0a /535d"),
    ('r', "/030a ~060343"),
    ('s', "~54530306575a0a09"),
    ('t', "~10161a4a /0333"),
    ('u', "~03070a5a5753 /535a"),
    ('v', "/033a63"),
    ('w', "/032a446a83"),
    ('x', "/035a /530a"),
    ('y', "/033a /631d"),
    ('z', "/03530a5a"),
    ('0', "o005053575a0a0703"),
    ('1', "/12303a"),
    ('2', "~020050540a /0a5a"),
    ('3', "~0200505525 ~25555a0a08"),
    ('4', "/4a400757"),
    ('5', "/500004 ~04545a0a08"),
    ('6', "~51500007 o04545a0a"),
    ('7', "/00502a"),
    ('8', "o00505505 o05555a0a"),
    ('9', "o00505606 ~535a0a09"),
    ('.', "/0a0a"),
    (',', "/1a0c"),
    (':', "/0404 /0a0a"),
    (';', "/1414 /1a0c"),
    ('-', "/0646"),
    ('–', "/0666"),
    ('_', "/0b6b"),
    ('/', "/500b"),
    ('\\', "/005b"),
    ('=', "/0454 /0757"),
    ('+', "/0747 /2529"),
    ('×', "/0549 /4509"),
    ('·', "/0606"),
    ('%', "/700a o00202303 o57777a5a"),
    ('(', "~20000a2a"),
    (')', "~00202a0a"),
    ('[', "/20000b2b"),
    (']', "/00202b0b"),
    ('<', "/52065a"),
    ('>', "/02560a"),
    ('#', "/201a /504a /0363 /0767"),
    ('\'', "/0002"),
    ('"', "/0002 /2022"),
    ('!', "/0007 /0a0a"),
    ('?', "~020050542627 /2a2a"),
    ('*', "/2026 /0145 /4105"),
    ('|', "/000c"),
    ('µ', "~03070a5a5753 /535a /030d"),
];

/// What is drawn of a character that there is no glyph for.
const UNKNOWN: &str = "/0060 6a0a00";

/// A piece of a stroke.
type Piece = [(f32, f32); 2];

/// A character as the pen goes.
#[derive(Debug)]
pub struct Glyph {
    pieces: Vec<Piece>,
    /// How far the next character stands, in units.
    pub advance: f32,
}

impl Glyph {
    /// The glyph of a character; a box if there is none.
    pub fn of(character: char) -> Self {
        if character.is_whitespace() {
            return Self { pieces: Vec::new(), advance: BLANK + SPACING };
        }
        let known = GLYPHS.iter().find(|(known, _)| *known == character);
        let pieces = pieces(known.map_or(UNKNOWN, |(_, strokes)| strokes));
        // Digits are equally wide, so that a number does not move when it changes.
        let width = if character.is_ascii_digit() {
            5.0
        } else {
            pieces.iter().flatten().fold(0.0, |width: f32, (x, _)| width.max(*x))
        };
        Self { pieces, advance: width + SPACING }
    }

    /// How much of the pixel around (`x`, `y`) is covered, from 0 to 1, with `scale` pixels a unit.
    pub fn coverage(&self, x: f32, y: f32, scale: f32) -> f32 {
        let point = (x / scale, y / scale);
        let nearest = self.pieces.iter().map(|piece| distance(piece, point));
        let nearest = nearest.fold(f32::INFINITY, f32::min);
        ((PEN - nearest) * scale + 0.5).clamp(0.0, 1.0)
    }
}

/// How wide a text is, in units.
pub fn width(text: &str) -> f32 {
    text.chars().map(|character| Glyph::of(character).advance).sum::<f32>() - SPACING
}

fn pieces(strokes: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for stroke in strokes.split(['/', '~', 'o']).zip(marks(strokes)) {
        let (text, mark) = stroke;
        let points = points(text);
        match mark {
            '/' => pieces.extend(points.windows(2).map(|pair| [pair[0], pair[1]])),
            '~' => spline(&points, &mut pieces),
            _ => closed(&points, &mut pieces),
        }
    }
    pieces
}

/// The mark before each piece of text between marks; before the first there is none.
fn marks(strokes: &str) -> impl Iterator<Item = char> {
    let found: Vec<char> = strokes.chars().filter(|c| matches!(c, '/' | '~' | 'o')).collect();
    std::iter::once('/').chain(found)
}

fn points(text: &str) -> Vec<(f32, f32)> {
    let digits: Vec<f32> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as f32).collect();
    digits.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

fn middle(a: (f32, f32), b: (f32, f32)) -> (f32, f32) {
    (f32::midpoint(a.0, b.0), f32::midpoint(a.1, b.1))
}

fn spline(points: &[(f32, f32)], pieces: &mut Vec<Piece>) {
    let [first, inner @ .., last] = points else { return };
    let mut from = *first;
    for (index, control) in inner.iter().enumerate() {
        let to = inner.get(index + 1).map_or(*last, |next| middle(*control, *next));
        bend(from, *control, to, pieces);
        from = to;
    }
}

fn closed(points: &[(f32, f32)], pieces: &mut Vec<Piece>) {
    for (index, control) in points.iter().enumerate() {
        let before = points[(index + points.len() - 1) % points.len()];
        let after = points[(index + 1) % points.len()];
        bend(middle(before, *control), *control, middle(*control, after), pieces);
    }
}

/// A parabola from `from` to `to`, towards `control`.
fn bend(from: (f32, f32), control: (f32, f32), to: (f32, f32), pieces: &mut Vec<Piece>) {
    let at = |step: u8| {
        let t = f32::from(step) / f32::from(PIECES);
        let mix = |a: f32, b: f32, c: f32| {
            a * (1.0 - t) * (1.0 - t) + 2.0 * b * t * (1.0 - t) + c * t * t
        };
        (mix(from.0, control.0, to.0), mix(from.1, control.1, to.1))
    };
    pieces.extend((0..PIECES).map(|step| [at(step), at(step + 1)]));
}

fn distance([a, b]: &Piece, point: (f32, f32)) -> f32 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx * dx + dy * dy;
    let along = ((point.0 - a.0) * dx + (point.1 - a.1) * dy) / length.max(f32::EPSILON);
    let along = along.clamp(0.0, 1.0);
    // Not `hypot`: it is of glibc 2.35, newer than the oldest system that the packages are for.
    let (x, y) = (point.0 - a.0 - along * dx, point.1 - a.1 - along * dy);
    (x * x + y * y).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_glyph_has_strokes_within_its_grid() {
        for (character, strokes) in GLYPHS {
            let digits = strokes.chars().filter(char::is_ascii_hexdigit).count();
            let other =
                strokes.chars().filter(|c| !c.is_ascii_hexdigit()).all(|c| "/~o ".contains(c));
            assert!(digits % 2 == 0 && other, "{character}: {strokes}");
            let glyph = Glyph::of(*character);
            assert!(!glyph.pieces.is_empty(), "{character}");
            let inside = |(x, y): &(f32, f32)| (0.0..=8.0).contains(x) && (0.0..=13.0).contains(y);
            assert!(glyph.pieces.iter().flatten().all(inside), "{character}: {strokes}");
        }
        for printable in ('!'..='~').filter(|c| !"$&@^`{}~".contains(*c)) {
            assert!(GLYPHS.iter().any(|(known, _)| *known == printable), "{printable}");
        }
    }

    #[test]
    fn a_stroke_covers_what_lies_under_the_pen() {
        let stem = Glyph::of('l');
        assert_eq!(stem.coverage(0.0, 50.0, 10.0), 1.0);
        assert_eq!(stem.coverage(20.0, 50.0, 10.0), 0.0);
        assert!((stem.coverage(6.2, 50.0, 10.0) - 0.5).abs() < 1e-3, "half a pixel at the edge");
        assert_eq!(Glyph::of(' ').coverage(0.0, 0.0, 10.0), 0.0);
    }

    #[test]
    fn figures_are_equally_wide() {
        assert_eq!(width("111"), width("888"));
    }
}
