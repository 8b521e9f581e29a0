//! Players of others, which scenarios can name.

use super::{Check, State};

const GROUP: &str = "players";

/// All checks of this module.
pub fn checks() -> Vec<Check> {
    let check = |(program, name): (_, &str)| {
        let found = suiro_players::locate(program)?;
        let ok = |found: &str| Check::ok(GROUP, name, "a player that is not ours", found);
        Some(match found {
            Ok(at) => {
                let library = at.library.map(|path| format!(", {}", path.display()));
                ok(&format!("{}{}", at.command.display(), library.unwrap_or_default()))
            }
            Err(missing) => ok(&missing.reason).but(State::Missing, missing.remedy),
        })
    };
    suiro_players::programs().filter_map(check).collect()
}
