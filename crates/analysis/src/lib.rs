//! Records to summaries to findings, pure.
