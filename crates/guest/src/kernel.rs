//! The guest's kernel: where it is, and whether it is the one that this program was made for.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use suiro_outside::file;

/// The configuration of the kernel, then its patches in the order of their names: what makes a kernel fit this program.
const RECIPE: [&str; 8] = [
    include_str!("../../../kernel/config"),
    include_str!("../../../kernel/patches/0001-vdso-getcpu.patch"),
    include_str!("../../../kernel/patches/0002-vdso-clock.patch"),
    include_str!("../../../kernel/patches/0003-seed.patch"),
    include_str!("../../../kernel/patches/0004-time-travel-show.patch"),
    include_str!("../../../kernel/patches/0005-sigterm.patch"),
    include_str!("../../../kernel/patches/0006-no-home-files.patch"),
    include_str!("../../../kernel/patches/0007-memfd.patch"),
];

/// Names a kernel of the user's own: the program `linux`, with its `kernel.json` next to it.
const VARIABLE: &str = "SUIRO_KERNEL";
/// Where a package puts the kernel, relative to the folder of the program `suiro`.
const PACKAGED: &str = "../lib/suiro/kernel";
/// What describes a kernel, next to it.
const DOCUMENT: &str = "kernel.json";
/// Largest description, and largest kernel.
const DOCUMENT_BYTES_MAX: u64 = 64 << 10;
const PROGRAM_BYTES_MAX: u64 = 256 << 20;

/// A kernel for guests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The program.
    pub program: PathBuf,
    /// Its version, such as `7.2.12`.
    pub version: String,
    /// SHA-256 of the program, in hexadecimal.
    pub sha256: String,
}

/// Why there is no kernel to start.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// None was built.
    #[error("virtual time needs a kernel for guests, and there is none\nhint: {0}")]
    Absent(&'static str),
    /// It is there and cannot be used.
    #[error("the kernel for guests {path}: {reason}\nhint: {hint}")]
    Unusable {
        /// Its folder or its program.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// How to fix it.
        hint: &'static str,
    },
}

const BUILD: &str = "make kernel, in a clone of suiro, builds it in four minutes";
const AGAIN: &str = "make kernel, in a clone of this version of suiro, builds it again";

/// `kernel.json`, written by `kernel/build`.
#[derive(Debug, Deserialize)]
struct Description {
    version: String,
    recipe: String,
    sha256: String,
}

impl Kernel {
    /// Looks for it: where `SUIRO_KERNEL` points, next to this program, in the cache folder `cache`, in this order.
    ///
    /// # Errors
    /// If there is none, or it was made for another version of this program, or it is damaged.
    pub fn find(cache: &Path) -> Result<Self, KernelError> {
        if let Some(own) = named() {
            return Self::at(if own.is_dir() { &own } else { own.parent().unwrap_or(&own) });
        }
        let program = std::env::current_exe().ok();
        let packaged =
            program.as_deref().and_then(Path::parent).map(|folder| folder.join(PACKAGED));
        let built = cache.join("kernel").join(recipe());
        let mut folders = packaged.into_iter().chain([built]);
        match folders.find(|folder| folder.join("linux").exists()) {
            Some(folder) => Self::at(&folder),
            None => Err(KernelError::Absent(BUILD)),
        }
    }

    /// Looks for the kernel of this SHA-256, which made results: what [`find`](Self::find) finds, else one that `kernel/build`
    /// made earlier and keeps. If there is none, or `SUIRO_KERNEL` names another, it is what `find` finds.
    ///
    /// # Errors
    /// As of [`find`](Self::find).
    pub fn find_or_kept(cache: &Path, sha256: &str) -> Result<Self, KernelError> {
        let found = Self::find(cache);
        if named().is_some() || found.as_ref().is_ok_and(|kernel| kernel.sha256 == sha256) {
            return found;
        }
        Self::kept(cache, sha256).map_or(found, Ok)
    }

    /// The kernel of this SHA-256 among those that were built for this program.
    fn kept(cache: &Path, sha256: &str) -> Option<Self> {
        let entries = std::fs::read_dir(cache.join("kernel")).ok()?.filter_map(Result::ok);
        let folders = entries.map(|entry| entry.path());
        let is_it = |folder: &PathBuf| {
            describe(&folder.join(DOCUMENT)).is_ok_and(|description| description.sha256 == sha256)
        };
        folders.filter(is_it).find_map(|folder| Self::at(&folder).ok())
    }

    /// The kernel in this folder. Its path has no links: those of a cache may lead elsewhere before the next guest starts.
    fn at(folder: &Path) -> Result<Self, KernelError> {
        let unusable = |path: &Path, reason: String| KernelError::Unusable {
            path: path.to_owned(),
            reason,
            hint: AGAIN,
        };
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let folder = &here.canonicalize().map_err(|error| unusable(here, error.to_string()))?;
        let document = folder.join(DOCUMENT);
        let description = describe(&document).map_err(|reason| unusable(&document, reason))?;
        if description.recipe != recipe() {
            return Err(unusable(
                folder,
                format!(
                    "it was made from another configuration ({}; this program expects {})",
                    description.recipe,
                    recipe()
                ),
            ));
        }
        let program = folder.join("linux");
        let bytes = file::read(&program, PROGRAM_BYTES_MAX)
            .map_err(|error| unusable(&program, error.to_string()))?;
        if hexadecimal(&Sha256::digest(&bytes)) != description.sha256 {
            return Err(unusable(&program, "it is not the file that was built".to_owned()));
        }
        Ok(Self { program, version: description.version, sha256: description.sha256 })
    }
}

/// Where the user's own kernel is, if one is named.
fn named() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|own| !own.is_empty()).map(PathBuf::from)
}

/// What `kernel/build` wrote about a kernel; or why it cannot be read.
fn describe(document: &Path) -> Result<Description, String> {
    let text = file::read_text(document, DOCUMENT_BYTES_MAX).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// What the configuration and the patches are called together; `kernel/build` computes the same name.
fn recipe() -> String {
    let mut hash = Sha256::new();
    RECIPE.iter().for_each(|part| hash.update(part));
    hexadecimal(&hash.finalize())[..16].to_owned()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The TCP congestion controls of the guest's kernel, by the names that sockets take.
pub fn congestion_controls() -> Vec<String> {
    let asked = RECIPE[0].lines().filter_map(|line| {
        let name = line.strip_prefix("CONFIG_TCP_CONG_")?.strip_suffix("=y")?;
        (name != "ADVANCED").then(|| name.to_lowercase())
    });
    ["reno".to_owned()].into_iter().chain(asked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_is_of_every_file() {
        let folder = Path::new("../../kernel");
        let mut patches: Vec<_> = std::fs::read_dir(folder.join("patches"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        patches.sort();
        let files = [folder.join("config")].into_iter().chain(patches);
        let texts: Vec<String> = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
        assert_eq!(texts, RECIPE, "RECIPE lists the configuration and every patch, by name");
        assert_eq!(recipe().len(), 16);
    }

    #[test]
    fn the_algorithms_of_the_studies_are_in_the_kernel() {
        let controls = congestion_controls();
        for name in ["reno", "cubic", "vegas", "bbr"] {
            assert!(controls.iter().any(|control| control == name), "{name}: {controls:?}");
        }
    }

    #[test]
    fn a_kernel_that_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = |text: &str| {
            std::fs::write(folder.path().join("kernel.json"), text).unwrap();
            Kernel::at(folder.path()).unwrap_err().to_string()
        };
        std::fs::write(folder.path().join("linux"), b"not a kernel").unwrap();
        let other = r#"{"version": "7.2", "recipe": "0", "sha256": ""}"#;
        let why = error(other);
        assert!(
            why.contains("another configuration") && why.contains("hint: make kernel"),
            "{why}"
        );
        let changed = format!(r#"{{"version": "7.2", "recipe": "{}", "sha256": ""}}"#, recipe());
        assert!(error(&changed).contains("not the file that was built"));
        assert!(error("{").contains("kernel.json"));
    }

    /// A folder with a kernel of this content, made for this program, and its SHA-256.
    fn build(folder: &Path, content: &str) -> String {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("linux"), content).unwrap();
        let sha256 = hexadecimal(&Sha256::digest(content));
        let recipe = recipe();
        let text = format!(r#"{{"version": "7.2", "recipe": "{recipe}", "sha256": "{sha256}"}}"#);
        std::fs::write(folder.join(DOCUMENT), text).unwrap();
        sha256
    }

    #[test]
    fn a_kernel_that_was_built_earlier_is_found_by_its_checksum() {
        let cache = tempfile::tempdir().unwrap();
        let kernels = cache.path().canonicalize().unwrap().join("kernel");
        let (old, new) = (build(&kernels.join("a"), "old"), build(&kernels.join("b"), "new"));
        std::fs::create_dir(kernels.join("new.x")).unwrap();
        let found = Kernel::kept(cache.path(), &old).unwrap();
        assert_eq!((found.program, found.sha256), (kernels.join("a/linux"), old.clone()));
        assert_eq!(Kernel::kept(cache.path(), &new).unwrap().program, kernels.join("b/linux"));
        assert_eq!(Kernel::kept(cache.path(), "0"), None);
        // One that was changed is not the one that made the results.
        std::fs::write(kernels.join("a/linux"), "changed").unwrap();
        assert_eq!(Kernel::kept(cache.path(), &old), None);
    }

    #[test]
    fn a_kernel_stays_the_same_when_a_link_is_pointed_elsewhere() {
        let cache = tempfile::tempdir().unwrap();
        let kernels = cache.path().canonicalize().unwrap();
        build(&kernels.join("a"), "old");
        std::os::unix::fs::symlink("a", kernels.join("link")).unwrap();
        let found = Kernel::at(&kernels.join("link")).unwrap();
        assert_eq!(found.program, kernels.join("a/linux"));
    }
}
