//! `web/src/generated/` is generated from the types of pages; this fails when it is stale. `make generate` writes it.

use suiro_page_types::check;
use suiro_report::{Difference, Page};

#[test]
fn the_types_of_the_page_are_current() {
    check::<Page>("page.ts", "report/src/page.rs");
}

#[test]
fn the_types_of_the_page_of_a_comparison_are_current() {
    check::<Difference>("diff.ts", "report/src/diff/mod.rs");
}
