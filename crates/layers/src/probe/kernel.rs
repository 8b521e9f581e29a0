//! What the running kernel provides, read from its BTF.

use std::collections::BTreeMap;

use libbpf_rs::ErrorExt;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::{BtfType, ReferencesType, types};
use suiro_record::Text;

/// Prefix of the kernel's drop reasons.
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

    /// Whether a tracepoint with this name exists.
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.prototype(name).is_some()
    }

    /// Whether `kfree_skb` reports which socket a packet was for (Linux 6.11): its fourth argument.
    pub fn drops_name_socket(&self) -> bool {
        // The first parameter belongs to the tracer.
        self.prototype("kfree_skb").is_some_and(|proto| proto.iter().count() >= 5)
    }

    /// The names of drop reasons, by number.
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
