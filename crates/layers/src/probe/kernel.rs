//! What the running kernel has, read from its BTF.

use std::collections::BTreeMap;

use libbpf_rs::ErrorExt;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::{BtfType, ReferencesType, types};
use suiro_record::Text;

/// Reasons of the kernel's for drops begin with this.
const REASON: &str = "SKB_DROP_REASON_";

/// The types of the running kernel.
pub struct Kernel(Btf<'static>);

impl Kernel {
    /// Reads them.
    ///
    /// # Errors
    /// A kernel without BTF.
    pub fn read() -> libbpf_rs::Result<Self> {
        Btf::from_vmlinux().map(Self).context("reading /sys/kernel/btf/vmlinux")
    }

    /// True if there is a tracepoint of this name.
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.prototype(name).is_some()
    }

    /// True if `kfree_skb` says for which socket a packet was (Linux 6.11): its fourth argument.
    pub fn drops_name_socket(&self) -> bool {
        // The first parameter is the tracer's own.
        self.prototype("kfree_skb").is_some_and(|proto| proto.iter().count() >= 5)
    }

    /// The names of reasons for drops, by number.
    pub fn drop_reasons(&self) -> BTreeMap<u16, Text> {
        let Some(reasons) = self.0.type_by_name::<types::Enum<'_>>("skb_drop_reason") else {
            return BTreeMap::new();
        };
        let named = |member: types::EnumMember<'_>| {
            let name = member.name?.to_str()?;
            let number = u16::try_from(member.value).ok()?;
            Some((number, Text::from(name.strip_prefix(REASON).unwrap_or(name))))
        };
        reasons.iter().filter_map(named).collect()
    }

    fn prototype(&self, tracepoint: &str) -> Option<types::FuncProto<'_>> {
        let name = format!("btf_trace_{tracepoint}");
        let typedef: BtfType<'_> = *self.0.type_by_name::<types::Typedef<'_>>(&name)?;
        let pointer = types::Ptr::try_from(typedef.skip_mods_and_typedefs()).ok()?;
        types::FuncProto::try_from(pointer.referenced_type()).ok()
    }
}
