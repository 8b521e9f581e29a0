//! Endpoints that were read in earlier cells. Most sections say the same in many cells, and to see that takes less time than
//! to read them again.

use std::collections::BTreeMap;

use crate::document::{Node, same};
use crate::endpoint::{Common, EndpointSpec};

/// Most values of a section that are kept: those of the latest cells.
const KEPT: usize = 16;

/// The values that sections below `[endpoints]` had, references replaced, and what each was read as.
#[derive(Default)]
pub(crate) struct Known<'t> {
    sections: BTreeMap<String, Vec<Section<'t>>>,
}

struct Section<'t> {
    value: Node<'t>,
    common: Common,
    spec: EndpointSpec,
}

impl<'t> Known<'t> {
    /// What the section was read as when it had this value.
    pub fn find(&mut self, name: &str, value: &Node<'t>) -> Option<(Common, EndpointSpec)> {
        let kept = self.sections.get_mut(name)?;
        let at = kept.iter().position(|section| same(&section.value, value))?;
        // The next cell is likely to have the same value.
        kept[..=at].rotate_right(1);
        let Section { common, spec, .. } = &kept[0];
        Some((common.clone(), spec.clone()))
    }

    /// Keeps what the section was read as.
    pub fn keep(&mut self, name: &str, value: &Node<'t>, (common, spec): &(Common, EndpointSpec)) {
        let kept = self.sections.entry(name.to_owned()).or_default();
        kept.truncate(KEPT - 1);
        let (value, common, spec) = (value.clone(), common.clone(), spec.clone());
        kept.insert(0, Section { value, common, spec });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{entry, parse};

    fn read(port: u16) -> (Common, EndpointSpec) {
        let text = format!("kind = 'web-server'\nport = {port}");
        let common = toml::from_str("host = 'server'").unwrap();
        (common, toml::from_str(&text).unwrap())
    }

    #[test]
    fn what_was_read_is_found_by_its_section_and_its_value() {
        let root = parse("a = { port = 1 }\nb = { port = 2 }\nc = { port = 1 }\n").unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| entry(&root, name).unwrap());
        let mut known = Known::default();
        assert!(known.find("web", a).is_none());
        known.keep("web", a, &read(1));
        assert!(known.find("web", b).is_none() && known.find("other", a).is_none());
        known.keep("web", b, &read(2));
        // The same value elsewhere in the text.
        assert!(known.find("web", c) == Some(read(1)));
        assert!(known.find("web", b) == Some(read(2)));
    }

    #[test]
    fn of_many_values_the_latest_are_kept() {
        let ports = 1..=KEPT as u16 + 1;
        let list: Vec<String> = ports.clone().map(|port| port.to_string()).collect();
        let text = format!("list = [{}]", list.join(", "));
        let root = parse(&text).unwrap();
        let list = entry(&root, "list").unwrap().get_ref().as_array().unwrap();
        let mut known = Known::default();
        for (value, port) in list.iter().zip(ports) {
            known.keep("web", value, &read(port));
            // The first is used all the time.
            assert!(known.find("web", &list[0]) == Some(read(1)), "{port}");
        }
        let found: Vec<bool> =
            list.iter().map(|value| known.find("web", value).is_some()).collect();
        // The second is the one that was not used for the longest time.
        let expected: Vec<bool> = (0..list.len()).map(|at| at != 1).collect();
        assert_eq!(found, expected);
    }
}
