//! `suiro run --resume`: what a results folder was made with so far. All its trials are of one suiro, one kernel of guests
//! and one version of each program, as those of merged folders are, because its manifest names one of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use suiro_record::{Folder, Manifest, VirtualTime};

use crate::Usage;

/// The version of a program that did not say one in time (`suiro_browser` and `suiro_players` record it so).
const UNKNOWN: &str = "unknown";

/// Versions of programs, by name.
type Versions = BTreeMap<String, String>;

/// What an earlier run wrote into a results folder.
pub struct Earlier {
    manifest: Manifest,
}

impl Earlier {
    /// Reads the folder's manifest; `None` if nothing was run there.
    ///
    /// # Errors
    /// It cannot be read, or another version of suiro made it.
    pub fn read(folder: &Folder) -> Result<Option<Self>> {
        if !folder.root().join("manifest.json").exists() {
            return Ok(None);
        }
        let manifest = folder.manifest().context("reading what the earlier run recorded")?;
        let (then, now) = (&manifest.suiro, env!("CARGO_PKG_VERSION"));
        if then != now {
            bail!(Usage(format!(
                "{}: made by suiro {then}, and this is suiro {now}\n\
                 hint: continue with suiro {then}, or name a new folder with --out",
                folder.root().display()
            )));
        }
        Ok(Some(Self { manifest }))
    }

    /// The SHA-256 of its guests' kernel, if it ran in virtual time.
    pub fn kernel(&self) -> Option<&str> {
        self.manifest.virtual_time.as_ref().map(|time| &*time.kernel_sha256)
    }

    /// The versions of programs that it recorded.
    pub const fn versions(&self) -> &Versions {
        &self.manifest.versions
    }

    /// Refuses guests with another kernel, and a trial in another time.
    pub fn check_kernel(&self, now: Option<&VirtualTime>, dir: &Path) -> Result<()> {
        let (dir, then) = (dir.display(), self.manifest.virtual_time.as_ref());
        match (then, now) {
            (then, now) if then == now => Ok(()),
            (Some(then), Some(now)) => bail!(Usage(format!(
                "{dir}: the guests' kernel is another one than here: {} of SHA-256 {}, here {} of {}\n\
                 hint: continue with that kernel (SUIRO_KERNEL), or name a new folder with --out",
                then.kernel, then.kernel_sha256, now.kernel, now.kernel_sha256
            ))),
            (Some(_), _) => bail!(Usage(format!(
                "{dir}: its trials ran in virtual time, unlike these\n\
                 hint: continue with --virtual, or name a new folder with --out"
            ))),
            (None, _) => bail!(Usage(format!(
                "{dir}: its trials did not run in virtual time, unlike these\n\
                 hint: continue without --virtual, or name a new folder with --out"
            ))),
        }
    }

    /// Puts into the manifest of this run what describes the folder as a whole: when it was begun, on which machine, and the
    /// versions of programs. Trials that `is_there` knows and that this run leaves out stay in the plan.
    ///
    /// # Errors
    /// A program has another version than before.
    pub fn keep_in(
        self,
        manifest: &mut Manifest,
        dir: &Path,
        is_there: impl Fn(&suiro_record::PlannedTrial) -> bool,
    ) -> Result<()> {
        if let Some((name, then, now)) = other(&self.manifest.versions, &manifest.versions) {
            bail!(Usage(format!(
                "{}: made with {name} {then}, and here is {name} {now}\n\
                 hint: install {name} {then}, or name a new folder with --out",
                dir.display()
            )));
        }
        manifest.versions.extend(self.manifest.versions);
        manifest.started = self.manifest.started;
        manifest.machine = self.manifest.machine;
        let known: BTreeSet<String> = manifest.plan.iter().map(|it| it.folder.clone()).collect();
        let others = self.manifest.plan.into_iter().filter(|it| !known.contains(&it.folder));
        manifest.plan.extend(others.filter(is_there));
        manifest.plan.sort_by_key(|planned| planned.number);
        Ok(())
    }
}

/// A program that two records know in different versions, and these. One that did not answer in time has none.
fn other<'a>(then: &'a Versions, now: &'a Versions) -> Option<(&'a str, &'a str, &'a str)> {
    let differs = |(name, now): (&'a String, &'a String)| {
        let then = then.get(name).filter(|then| *then != now)?;
        let are_known = ![then, now].iter().any(|version| *version == UNKNOWN);
        are_known.then_some((&**name, &**then, &**now))
    };
    now.iter().find_map(differs)
}

/// Whether a trial ran with the versions of programs that its folder has.
pub fn fits(trial: &Versions, versions: &Versions) -> bool {
    other(versions, trial).is_none()
}

/// Adds the versions that a trial recorded.
///
/// # Errors
/// A program has another version in the folder. `name` is what messages call the trial.
pub fn add(versions: &mut Versions, trial: &Versions, name: &str) -> Result<()> {
    if let Some((program, then, now)) = other(versions, trial) {
        bail!(
            "{name}: ran with {program} {now}, and the folder has {program} {then}\n\
             hint: install {program} {then} and repeat the command with --resume, which runs this trial again; or run all \
             trials into a new folder"
        );
    }
    let known =
        trial.iter().filter(|(name, version)| *version != UNKNOWN || !versions.contains_key(*name));
    let known: Vec<_> = known.map(|(name, version)| (name.clone(), version.clone())).collect();
    versions.extend(known);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(version: &str) -> Versions {
        Versions::from([("tool".to_owned(), version.to_owned())])
    }

    #[test]
    fn a_version_that_is_unknown_differs_from_none() {
        let one = tool("1");
        assert!(fits(&tool("1"), &one) && fits(&tool("unknown"), &one));
        assert!(!fits(&tool("2"), &one));
        let mut folder = tool("unknown");
        add(&mut folder, &tool("2"), "#1").unwrap();
        add(&mut folder, &tool("unknown"), "#2").unwrap();
        assert_eq!(folder, tool("2"));
        let error = add(&mut folder, &tool("3"), "#3").unwrap_err().to_string();
        assert!(error.starts_with("#3: ran with tool 3, and the folder has tool 2"), "{error}");
    }
}
