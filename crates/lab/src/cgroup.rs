//! The memory that is left in the cgroups of this process, as in a container: its own cgroup and each parent may have a limit.

use std::path::{Component, Path, PathBuf};

use suiro_units::Bytes;

/// A version of cgroups, and its files.
struct Version {
    /// The type of its file system.
    kind: &'static str,
    /// What /proc/self/cgroup and the options of the mount have for it; empty for one that has all controllers.
    controller: &'static str,
    limits: &'static [&'static str],
    used: &'static str,
    /// The entry of `memory.stat` for page cache that is not in use, with that of the cgroups below.
    cache: &'static str,
}

// Linux, Documentation/admin-guide: cgroup-v2.rst (Memory Interface Files) and cgroup-v1/memory.rst.
const VERSIONS: &[Version] = &[
    Version {
        kind: "cgroup2",
        controller: "",
        limits: &["memory.max", "memory.high"],
        used: "memory.current",
        cache: "inactive_file",
    },
    Version {
        kind: "cgroup",
        controller: "memory",
        limits: &["memory.limit_in_bytes"],
        used: "memory.usage_in_bytes",
        cache: "total_inactive_file",
    },
];

/// What is left in the cgroup with the least; `None` without a limit. `read` returns the text of a file, if there is one.
pub(crate) fn room(read: impl Fn(&Path) -> Option<String>) -> Option<Bytes> {
    let own = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let rooms = VERSIONS.iter().filter_map(|version| {
        let folders = mounts.lines().filter_map(|mount| version.folders(&own, mount)).flatten();
        folders.filter_map(|folder| version.room(&folder, &read)).min()
    });
    rooms.min()
}

impl Version {
    /// The folders of the own cgroup and of its parents in a mount of this version, if it is one.
    /// proc(5): `… ROOT MOUNTPOINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS`; cgroups(7): `ID:CONTROLLERS:PATH`.
    fn folders(&self, own: &str, mount: &str) -> Option<Vec<PathBuf>> {
        let (left, right) = mount.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.next_back()?);
        let among = |names: &str| names.split(',').any(|name| name == self.controller);
        if kind != self.kind || !(self.controller.is_empty() || among(options)) {
            return None;
        }
        let path = own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            among(controllers).then_some(path)
        })?;
        // A container may see only its own cgroup, as the mount point. Then its path is that of the root, or has `..`.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        let within = below.components().all(|part| matches!(part, Component::Normal(_)));
        let below = if within { below } else { Path::new("") };
        Some(below.ancestors().map(|folder| Path::new(point).join(folder)).collect())
    }

    /// What is left in one cgroup. The kernel gives cache up before it refuses memory.
    fn room(&self, folder: &Path, read: &impl Fn(&Path) -> Option<String>) -> Option<Bytes> {
        let bytes = |name: &str| read(&folder.join(name))?.trim().parse().ok().map(Bytes::new);
        // The word `max` is no limit.
        let limit = self.limits.iter().filter_map(|&name| bytes(name)).min()?;
        let stat = read(&folder.join("memory.stat")).unwrap_or_default();
        let mut entries = stat.lines().filter_map(|line| line.split_once(' '));
        let cache = entries.find(|(name, _)| *name == self.cache);
        let cache = cache.and_then(|(_, value)| value.parse().ok()).map_or(Bytes::ZERO, Bytes::new);
        Some(limit.saturating_sub(bytes(self.used)?.saturating_sub(cache)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn room_in(files: &[(&str, String)]) -> Option<Bytes> {
        room(|path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| text.clone())
        })
    }

    fn gib(count: u64) -> String {
        format!("{}\n", count * GIB)
    }

    #[test]
    fn the_least_room_of_a_cgroup_and_its_parents_counts() {
        let mounts = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                      30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let mut files = vec![
            ("/proc/self/cgroup", "0::/a/b\n".to_owned()),
            ("/proc/self/mountinfo", mounts.to_owned()),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n".to_owned()),
        ];
        assert_eq!(room_in(&files), None);
        files.extend([
            ("/sys/fs/cgroup/a/b/memory.high", gib(6)),
            ("/sys/fs/cgroup/a/b/memory.current", gib(3)),
            ("/sys/fs/cgroup/a/b/memory.stat", format!("file {}inactive_file {}", gib(2), gib(1))),
        ]);
        // The cache takes 2 GiB, of which 1 GiB is not in use: 6 - (3 - 1).
        assert_eq!(room_in(&files), Some(Bytes::new(4 * GIB)));
        files.extend([
            ("/sys/fs/cgroup/a/memory.max", gib(8)),
            ("/sys/fs/cgroup/a/memory.high", "max\n".to_owned()),
            ("/sys/fs/cgroup/a/memory.current", gib(5)),
        ]);
        assert_eq!(room_in(&files), Some(Bytes::new(3 * GIB)));
        // What is used is above a limit that came later.
        files.extend([
            ("/sys/fs/cgroup/memory.max", gib(2)),
            ("/sys/fs/cgroup/memory.current", gib(5)),
        ]);
        assert_eq!(room_in(&files), Some(Bytes::ZERO));
    }

    #[test]
    fn a_container_with_version_1_sees_its_cgroup_as_the_root() {
        let mounts = "32 31 0:29 /box /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      35 31 0:32 /box /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let stat = format!("inactive_file 0\ntotal_inactive_file {}", gib(1));
        let mut files = vec![
            ("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/box\n0::/\n".to_owned()),
            ("/proc/self/mountinfo", mounts.to_owned()),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", gib(4)),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", gib(3)),
            ("/sys/fs/cgroup/memory/memory.stat", stat),
        ];
        assert_eq!(room_in(&files), Some(Bytes::new(2 * GIB)));
        // Of a cgroup outside of the mount, only the mount is read.
        files[0].1 = "4:memory:/../other\n".to_owned();
        assert_eq!(room_in(&files), Some(Bytes::new(2 * GIB)));
        files[1].1 = "nonsense\n - \n".to_owned();
        assert_eq!(room_in(&files), None);
    }
}
