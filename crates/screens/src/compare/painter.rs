//! Draws everything of a comparison but the videos, tick by tick.

use suiro_analysis::Viewing;

use super::canvas::{Area, Canvas, Colour, Ink};
use super::layout::{Layout, TileAreas};

/// Width of the frame around a video that is frozen.
const FRAME: u32 = 6;

/// Height of the words above a graph.
const WORDS: u32 = 24;

/// Height of capitals in the title, in a tile's label, and in a graph.
const SIZES: [u32; 3] = [17, 15, 9];

/// One trial to show.
#[derive(Debug, Clone)]
pub struct Tile {
    /// What it is called.
    pub label: String,
    /// What its viewer saw.
    pub viewing: Viewing,
    /// Why it stalled: from, to, and the reason in a few words.
    pub reasons: Vec<(i64, i64, String)>,
}

/// What is compared.
#[derive(Debug, Clone)]
pub struct Content {
    /// The scenario.
    pub title: String,
    /// How long it lasts, in nanoseconds.
    pub duration_ns: i64,
    /// The trials.
    pub tiles: Vec<Tile>,
}

struct Palette {
    ground: Colour,
    panel: Colour,
    text: Colour,
    faint: Colour,
    frozen: Colour,
    alarm: Colour,
    /// One for each tile, in turn: those of the report's page.
    marks: [Colour; 6],
}

fn palette() -> Palette {
    Palette {
        ground: Colour::rgb(13, 17, 23),
        panel: Colour::rgb(27, 33, 42),
        text: Colour::rgb(240, 243, 246),
        faint: Colour::rgb(145, 155, 168),
        frozen: Colour::rgb(110, 24, 28),
        alarm: Colour::rgb(255, 82, 82),
        marks: [
            Colour::rgb(86, 156, 255),
            Colour::rgb(255, 167, 51),
            Colour::rgb(61, 201, 163),
            Colour::rgb(214, 112, 214),
            Colour::rgb(240, 214, 74),
            Colour::rgb(140, 140, 255),
        ],
    }
}

/// What the graphs show: one quantity, on one scale for all tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    /// Age of the frame.
    Latency,
    /// Media buffered.
    Buffer,
}

impl Quantity {
    fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Buffer => "buffer",
        }
    }

    fn seconds(self, viewing: &Viewing, t_ns: i64) -> Option<f64> {
        match self {
            Self::Latency => viewing.age_ns(t_ns).map(|ns| ns as f64 / 1e9),
            Self::Buffer => viewing.buffer_ms(t_ns).map(|ms| ms / 1e3),
        }
    }
}

/// Draws the content.
pub struct Painter {
    content: Content,
    layout: Layout,
    palette: Palette,
    quantity: Quantity,
    /// The top of every graph, in seconds.
    top: f64,
    /// What never changes.
    still: Canvas,
    canvas: Canvas,
}

impl Painter {
    /// A painter for that content in that layout, which has an area for each tile.
    pub fn new(content: Content, layout: Layout) -> Self {
        let live = |tile: &Tile| tile.viewing.moments.iter().any(|m| m.captured_ns.is_some());
        let quantity =
            if content.tiles.iter().any(live) { Quantity::Latency } else { Quantity::Buffer };
        let still = Canvas::new(layout.width, layout.height);
        let canvas = Canvas::new(layout.width, layout.height);
        let mut painter =
            Self { content, layout, palette: palette(), quantity, top: 1.0, still, canvas };
        painter.top = painter.greatest().max(1.0).ceil();
        painter.prepare();
        painter
    }

    /// The frame at a time, without the videos: planes one after the other.
    pub fn paint(&mut self, t_ns: i64) -> &[u8] {
        self.canvas.copy(&self.still);
        let clock = format!("{:.1} s", t_ns as f64 / 1e9);
        let Area { x, width, height, .. } = self.layout.title;
        let ink = Ink { size: SIZES[0], colour: self.palette.text };
        self.canvas.text_to(x + width, (height - SIZES[0]) / 2, ink, &clock);
        for index in 0..self.content.tiles.len() {
            self.tile(index, t_ns);
        }
        self.canvas.bytes()
    }

    /// The greatest value of any graph.
    fn greatest(&self) -> f64 {
        let columns = self.layout.tiles.first().map_or(1, |tile| tile.graph.width);
        let values = self.content.tiles.iter().flat_map(|tile| {
            (0..columns).filter_map(move |column| {
                self.quantity.seconds(&tile.viewing, self.time_of(column, columns))
            })
        });
        values.fold(0.0, f64::max)
    }

    fn time_of(&self, column: u32, columns: u32) -> i64 {
        (i128::from(self.content.duration_ns) * i128::from(column) / i128::from(columns.max(1)))
            as i64
    }

    /// Draws what never changes: title, labels, graphs.
    fn prepare(&mut self) {
        let mut still = Canvas::new(self.layout.width, self.layout.height);
        let Palette { ground, panel, text, faint, .. } = self.palette;
        let (width, height) = (self.layout.width, self.layout.height);
        still.fill(Area { x: 0, y: 0, width, height }, ground);
        let title = self.layout.title;
        let middle = (title.height - SIZES[0]) / 2;
        still.text(title.x, middle, Ink { size: SIZES[0], colour: text }, &self.content.title);
        for (index, (tile, areas)) in self.content.tiles.iter().zip(&self.layout.tiles).enumerate()
        {
            still.fill(areas.header, panel);
            still.fill(areas.graph, panel);
            let mark = self.palette.marks[index % self.palette.marks.len()];
            still.fill(Area { width: 6, ..areas.header }, mark);
            label(&mut still, areas, Ink { size: SIZES[1], colour: text }, &tile.label);
            self.graph(&mut still, tile, areas, (mark.dimmed(panel), self.palette.frozen), None);
            let ink = Ink { size: SIZES[2], colour: faint };
            let (left, right) = (areas.graph.x + 8, areas.graph.x + areas.graph.width - 8);
            still.text(left, areas.graph.y + 10, ink, self.quantity.name());
            still.text_to(right, areas.graph.y + 10, ink, &format!("0–{:.0} s", self.top));
        }
        self.still = still;
    }

    /// Draws a graph, up to a time if one is given.
    fn graph(
        &self,
        canvas: &mut Canvas,
        tile: &Tile,
        areas: &TileAreas,
        (usual, frozen): (Colour, Colour),
        until: Option<i64>,
    ) {
        let Area { x, y, width, height } = areas.graph;
        for column in 0..width {
            let t_ns = self.time_of(column, width);
            if until.is_some_and(|until| t_ns > until) {
                break;
            }
            let Some(value) = self.quantity.seconds(&tile.viewing, t_ns) else { continue };
            let room = f64::from(height - WORDS);
            let tall = ((value / self.top).clamp(0.0, 1.0) * room).round() as u32;
            let colour = if tile.viewing.frozen_ns(t_ns).is_some() { frozen } else { usual };
            canvas
                .fill(Area { x: x + column, y: y + height - tall, width: 1, height: tall }, colour);
        }
    }

    fn tile(&mut self, index: usize, t_ns: i64) {
        let mut canvas = std::mem::replace(&mut self.canvas, Canvas::new(0, 0));
        let (tile, areas) = (&self.content.tiles[index], &self.layout.tiles[index]);
        let Palette { text, faint, frozen, alarm, .. } = self.palette;
        let mark = self.palette.marks[index % self.palette.marks.len()];
        let standing = tile.viewing.frozen_ns(t_ns);
        if standing.is_some() {
            let Area { x, y, width, height } = areas.video;
            let (x, width) = (x - FRAME, width + 2 * FRAME);
            canvas.fill(Area { x, y, width, height: height + FRAME }, alarm);
            canvas.fill(areas.header, frozen);
            canvas.fill(Area { width: 6, ..areas.header }, alarm);
            label(&mut canvas, areas, Ink { size: SIZES[1], colour: text }, &tile.label);
        }
        canvas.fill(areas.video, Colour::rgb(0, 0, 0));
        self.graph(&mut canvas, tile, areas, (mark, alarm), Some(t_ns));
        let y = areas.header.y + (areas.header.height - SIZES[1]) / 2;
        let mut right = areas.header.x + areas.header.width - 14;
        let ink = |colour| Ink { size: SIZES[1], colour };
        if let Some(value) = self.quantity.seconds(&tile.viewing, t_ns) {
            right = canvas.text_to(right, y, ink(text), &format!("{value:.2} s")) - 22;
        }
        if let Some(bps) = tile.viewing.at(t_ns).and_then(|moment| moment.rung_bps) {
            right = canvas.text_to(right, y, ink(faint), &rate(bps)) - 22;
        }
        if let Some(ns) = standing {
            let words = format!("frozen {:.1} s", ns as f64 / 1e9);
            canvas.text_to(right, y, ink(alarm), &words);
            let during = |(from, to, _): &&(i64, i64, String)| (*from..*to).contains(&t_ns);
            if let Some((.., reason)) = tile.reasons.iter().find(during) {
                let ink = Ink { size: SIZES[1], colour: text };
                canvas.text(areas.graph.x + 20, areas.graph.y + 6, ink, reason);
            }
        } else if tile.viewing.at(t_ns).is_none() {
            canvas.text_to(right, y, ink(faint), "starting");
        }
        self.canvas = canvas;
    }
}

fn label(canvas: &mut Canvas, areas: &TileAreas, ink: Ink, text: &str) {
    let y = areas.header.y + (areas.header.height - ink.size) / 2;
    canvas.text(areas.header.x + 20, y, ink, text);
}

/// A bit rate in few characters.
fn rate(bps: i64) -> String {
    match bps {
        1_000_000.. => format!("{:.1} Mbit/s", bps as f64 / 1e6),
        _ => format!("{:.0} kbit/s", bps as f64 / 1e3),
    }
}
