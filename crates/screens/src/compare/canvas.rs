//! A frame in 4:2:0 to draw on: rectangles and text.

use std::collections::BTreeMap;

use super::font::{self, Glyph};

/// A colour in the video range of ITU-R BT.709.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour {
    y: u8,
    u: u8,
    v: u8,
}

impl Colour {
    /// From red, green and blue, 0 to 255: ITU-R BT.709 §3.
    pub fn rgb(red: u8, green: u8, blue: u8) -> Self {
        let [r, g, b] = [red, green, blue].map(|part| f32::from(part) / 255.0);
        let luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
        let chroma =
            |difference: f32, range: f32| (128.0 + 224.0 * difference / range).round() as u8;
        Self {
            y: (16.0 + 219.0 * luma).round() as u8,
            u: chroma(b - luma, 1.8556),
            v: chroma(r - luma, 1.5748),
        }
    }
}

impl Colour {
    /// A third of it on two thirds of `ground`.
    pub fn dimmed(self, ground: Self) -> Self {
        let mix = |a: u8, b: u8| ((u16::from(a) + 2 * u16::from(b)) / 3) as u8;
        Self { y: mix(self.y, ground.y), u: mix(self.u, ground.u), v: mix(self.v, ground.v) }
    }
}

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Of its left edge.
    pub x: u32,
    /// Of its upper edge.
    pub y: u32,
    /// Across.
    pub width: u32,
    /// Down.
    pub height: u32,
}

/// How a text is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Ink {
    /// Height of its capitals in pixels.
    pub size: u32,
    /// Its colour.
    pub colour: Colour,
}

/// How a character covers pixels, at one size.
#[derive(Debug)]
struct Mask {
    width: u32,
    height: u32,
    /// Pixels around the glyph's own box.
    margin: u32,
    values: Vec<u8>,
    advance: f32,
}

/// The frame.
#[derive(Debug)]
pub struct Canvas {
    width: u32,
    height: u32,
    /// Luma, then both chroma planes of a quarter of its size.
    bytes: Vec<u8>,
    masks: BTreeMap<(char, u32), Mask>,
}

impl Canvas {
    /// A black one; both sides must be even.
    pub fn new(width: u32, height: u32) -> Self {
        let luma = width as usize * height as usize;
        let mut bytes = vec![128; luma * 3 / 2];
        bytes[..luma].fill(16);
        Self { width, height, bytes, masks: BTreeMap::new() }
    }

    /// The planes, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Draws the frame of another canvas of the same size.
    pub fn copy(&mut self, from: &Self) {
        self.bytes.copy_from_slice(&from.bytes);
    }

    /// Fills what lies of an area within the frame. Chroma has half the resolution: edges at odd
    /// pixels bear their neighbour's tint.
    pub fn fill(&mut self, area: Area, colour: Colour) {
        let right = (area.x + area.width).min(self.width);
        let bottom = (area.y + area.height).min(self.height);
        for y in area.y..bottom {
            let row = y as usize * self.width as usize;
            if area.x < right {
                self.bytes[row + area.x as usize..row + right as usize].fill(colour.y);
            }
        }
        let (width, from, to) = (self.width / 2, area.x / 2, right.div_ceil(2));
        for y in area.y / 2..bottom.div_ceil(2) {
            for (plane, value) in [(0, colour.u), (1, colour.v)] {
                let row = self.chroma(plane) + y as usize * width as usize;
                if from < to {
                    self.bytes[row + from as usize..row + to as usize].fill(value);
                }
            }
        }
    }

    fn chroma(&self, plane: usize) -> usize {
        let luma = self.width as usize * self.height as usize;
        luma + plane * luma / 4
    }

    /// Writes a text whose capitals begin at (`x`, `y`); returns where it ends.
    pub fn text(&mut self, x: u32, y: u32, ink: Ink, text: &str) -> u32 {
        let scale = ink.size as f32 / 10.0;
        let mut at = x as f32;
        for character in text.chars() {
            let key = (character, ink.size);
            let mask = self.masks.remove(&key).unwrap_or_else(|| Mask::new(character, scale));
            self.blend(&mask, at.round() as i64, i64::from(y), ink.colour);
            at += mask.advance;
            self.masks.insert(key, mask);
        }
        at.round() as u32
    }

    /// Writes a text that ends at `right`; returns where it begins.
    pub fn text_to(&mut self, right: u32, y: u32, ink: Ink, text: &str) -> u32 {
        let width = font::width(text) * ink.size as f32 / 10.0;
        let x = right.saturating_sub(width.ceil() as u32);
        self.text(x, y, ink, text);
        x
    }

    fn blend(&mut self, mask: &Mask, x: i64, y: i64, colour: Colour) {
        let margin = i64::from(mask.margin);
        for row in 0..mask.height {
            for column in 0..mask.width {
                let covered = mask.values[(row * mask.width + column) as usize];
                let at = (x + i64::from(column) - margin, y + i64::from(row) - margin);
                if covered > 0 {
                    self.mix(at, covered, colour);
                }
            }
        }
    }

    fn mix(&mut self, (x, y): (i64, i64), covered: u8, colour: Colour) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { return };
        if x >= self.width || y >= self.height {
            return;
        }
        let mixed = |old: u8, new: u8, share: u32| {
            let sum = u32::from(old) * (255 - share) + u32::from(new) * share;
            (sum / 255) as u8
        };
        let at = y as usize * self.width as usize + x as usize;
        self.bytes[at] = mixed(self.bytes[at], colour.y, u32::from(covered));
        // Four pixels share their chroma: each gives it half of its own, so that letters of one
        // pixel's width are tinted and large ones not pale.
        let at = (y / 2) as usize * (self.width / 2) as usize + (x / 2) as usize;
        for (plane, value) in [(0, colour.u), (1, colour.v)] {
            let at = self.chroma(plane) + at;
            self.bytes[at] = mixed(self.bytes[at], value, u32::from(covered) / 2);
        }
    }
}

impl Mask {
    fn new(character: char, scale: f32) -> Self {
        let glyph = Glyph::of(character);
        let margin = scale.ceil() as u32;
        let width = (glyph.advance * scale).ceil() as u32 + 2 * margin;
        let height = (13.0 * scale).ceil() as u32 + 2 * margin;
        let value = |index: u32| {
            let centre = |at: u32| at as f32 + 0.5 - margin as f32;
            let (x, y) = (centre(index % width), centre(index / width));
            (glyph.coverage(x, y, scale) * 255.0).round() as u8
        };
        let values = (0..width * height).map(value).collect();
        Self { width, height, margin, values, advance: glyph.advance * scale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_bt_709() {
        assert_eq!(Colour::rgb(255, 255, 255), Colour { y: 235, u: 128, v: 128 });
        assert_eq!(Colour::rgb(0, 0, 0), Colour { y: 16, u: 128, v: 128 });
        assert_eq!(Colour::rgb(255, 0, 0), Colour { y: 63, u: 102, v: 240 });
    }

    #[test]
    fn what_lies_outside_is_not_drawn() {
        let mut canvas = Canvas::new(8, 4);
        let white = Colour::rgb(255, 255, 255);
        canvas.fill(Area { x: 6, y: 2, width: 100, height: 100 }, white);
        canvas.fill(Area { x: 60, y: 20, width: 1, height: 1 }, white);
        assert_eq!(canvas.bytes()[..32].iter().filter(|y| **y == 235).count(), 4);
        canvas.text(6, 0, Ink { size: 20, colour: white }, "MW");
        assert_eq!(canvas.bytes().len(), 48);
    }

    #[test]
    fn text_ends_where_it_should() {
        let mut canvas = Canvas::new(200, 20);
        let ink = Ink { size: 10, colour: Colour::rgb(255, 255, 255) };
        let begins = canvas.text_to(190, 4, ink, "1.5 s");
        let lit = |x: usize| (0..20).any(|y| canvas.bytes()[y * 200 + x] > 100);
        assert!((0..begins as usize - 1).chain(192..200).all(|x| !lit(x)));
        assert!((185..191).any(lit));
    }
}
