//! Where everything stands in a comparison: a title bar, and below it tiles in a grid. A tile is a
//! header, the video, and a graph.

use super::canvas::Area;

/// The frame is as large as it can be within this: full HD.
const WIDTH_MAX: u32 = 1920;
const HEIGHT_MAX: u32 = 1080;

/// Height of the title bar.
const TITLE: u32 = 64;
/// Around the grid.
const MARGIN: u32 = 24;
/// Between tiles.
const GAP: u32 = 20;
/// Height of a tile's header.
const HEADER: u32 = 44;
/// Height of a tile's graph.
const GRAPH: u32 = 64;

/// One tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileAreas {
    /// Label and figures.
    pub header: Area,
    /// The video.
    pub video: Area,
    /// The graph.
    pub graph: Area,
}

/// The whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Its width; even.
    pub width: u32,
    /// Its height; even.
    pub height: u32,
    /// Where the title's letters begin and end, and their middle.
    pub title: Area,
    /// The tiles, row by row.
    pub tiles: Vec<TileAreas>,
}

impl Layout {
    /// Tiles for `count` videos of `aspect` (width over height).
    pub fn new(count: u32, aspect: f64) -> Self {
        let (columns, rows) = grid(count.max(1));
        let across = WIDTH_MAX - 2 * MARGIN - (columns - 1) * GAP;
        let down = HEIGHT_MAX - TITLE - MARGIN - (rows - 1) * GAP - rows * (HEADER + GRAPH);
        let aspect = aspect.clamp(0.25, 4.0);
        let height = f64::from(down / rows).min(f64::from(across / columns) / aspect);
        let (video_width, video_height) = (even(height * aspect), even(height));
        let (tile_width, tile_height) = (video_width + GAP, HEADER + video_height + GRAPH + GAP);
        let tile = |index: u32| {
            let (row, column) = (index / columns, index % columns);
            // A last row that is not full stands in the middle.
            let missing = columns - columns.min(count - row * columns);
            let x = even(f64::from(MARGIN + column * tile_width + missing * tile_width / 2));
            let y = TITLE + row * tile_height;
            let area = |y, height| Area { x, y, width: video_width, height };
            TileAreas {
                header: area(y, HEADER),
                video: area(y + HEADER, video_height),
                graph: area(y + HEADER + video_height, GRAPH),
            }
        };
        let width = 2 * MARGIN + columns * tile_width - GAP;
        let height = TITLE + rows * tile_height - GAP + MARGIN;
        let title = Area { x: MARGIN, y: 0, width: width - 2 * MARGIN, height: TITLE };
        Self { width, height, title, tiles: (0..count).map(tile).collect() }
    }
}

/// Columns and rows for so many tiles.
fn grid(count: u32) -> (u32, u32) {
    let columns = match count {
        1 => 1,
        2..=4 => 2,
        _ => 3,
    };
    (columns, count.div_ceil(columns))
}

fn even(value: f64) -> u32 {
    (value / 2.0).floor() as u32 * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_lie_within_the_picture_and_apart() {
        for count in 1..=9 {
            for aspect in [16.0 / 9.0, 4.0 / 3.0, 9.0 / 16.0, 1.0] {
                let layout = Layout::new(count, aspect);
                assert!(layout.width <= WIDTH_MAX && layout.height <= HEIGHT_MAX, "{layout:?}");
                assert!(layout.width.is_multiple_of(2) && layout.height.is_multiple_of(2));
                for (index, tile) in layout.tiles.iter().enumerate() {
                    assert!(tile.video.width >= 64, "{count} {aspect}: {tile:?}");
                    assert!(tile.video.x + tile.video.width <= layout.width);
                    assert!(tile.graph.y + tile.graph.height <= layout.height);
                    let apart = |other: &TileAreas| {
                        tile.header.x + tile.header.width <= other.header.x
                            || tile.graph.y + tile.graph.height <= other.header.y
                            || other.header.x + other.header.width <= tile.header.x
                    };
                    assert!(layout.tiles[index + 1..].iter().all(apart), "{layout:?}");
                }
            }
        }
    }

    #[test]
    fn grids_are_those_of_the_study() {
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 9].map(grid),
            [(1, 1), (2, 1), (2, 2), (2, 2), (3, 2), (3, 2), (3, 3)]
        );
    }
}
