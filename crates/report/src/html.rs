//! The page as one file: the built template with the data in its place.

use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use suiro_outside::Beside;

use crate::ReportError;
use crate::page::Page;

/// The page of a results folder. Built from `web/`: `make generate` writes it, and `make test` fails if it is stale.
const REPORT: &str = include_str!("../assets/report.html");

/// The page of a comparison of results folders, built likewise.
pub(crate) const DIFF: &str = include_str!("../assets/diff.html");

/// Where the data goes in the template.
const PLACE: &str = "<!--suiro:data-->";

/// Writes the page to a file next to `path` and renames it, so that a reader never sees half of it. Returns its size in
/// bytes.
pub(crate) fn write(path: &Path, page: &Page) -> Result<u64, ReportError> {
    write_as(REPORT, path, &page.title, page)
}

/// The same of any page, from its template.
pub(crate) fn write_as(
    template: &str,
    path: &Path,
    name: &str,
    page: &impl Serialize,
) -> Result<u64, ReportError> {
    let io = |cause| ReportError::Io { path: path.into(), cause };
    let data = serde_json::to_string(page).map_err(ReportError::Json)?;
    let (before, after) = template.split_once(PLACE).expect("a template has one place: tested");
    let mut file = BufWriter::new(Beside::replace(path).map_err(io)?);
    let data = embed(&data);
    let parts = [before, &title(name), "<script type=\"application/json\" id=\"data\">"];
    let parts = parts.into_iter().chain([data.as_str(), "</script>", after]);
    let mut bytes = 0;
    for part in parts {
        file.write_all(part.as_bytes()).map_err(io)?;
        bytes += part.len() as u64;
    }
    let file = file.into_inner().map_err(|error| io(error.into_error()))?;
    file.keep().map_err(io)?;
    Ok(bytes)
}

/// JSON that no HTML parser takes for the end of its element: `<` occurs in strings only, where its
/// escape means the same.
fn embed(json: &str) -> String {
    json.replace('<', "\\u003c")
}

fn title(title: &str) -> String {
    let escaped = title.replace('&', "&amp;").replace('<', "&lt;");
    format!("<title>{escaped}</title>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_one_place_for_the_data() {
        for template in [REPORT, DIFF] {
            assert_eq!(template.matches(PLACE).count(), 1);
        }
    }

    #[test]
    fn data_cannot_end_its_element() {
        let json = serde_json::to_string("</script><!--").unwrap();
        let embedded = embed(&json);
        assert!(!embedded.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&embedded).unwrap(), "</script><!--");
    }
}
