//! Video sources, encoding ladders and packages; runs ffmpeg.
