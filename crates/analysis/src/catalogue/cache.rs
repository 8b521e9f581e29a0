//! Caches between origins and viewers.

use crate::cache::{Cache, caches};
use crate::family::{Family, Measure, Subject};
use crate::instance::Instance;
use crate::view::View;

/// Each cache.
pub(super) struct Caches;

impl Subject for Caches {
    type One<'v> = Cache<'v>;

    const HAS_MEAN: bool = true;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Cache<'v>)> {
        let all = caches(view);
        let several = all.len() > 1;
        all.into_iter().map(|(name, cache)| (Instance::among(several, name), cache)).collect()
    }
}

pub(super) static FAMILY: Family<Caches> = Family { metrics: METRICS, series: &[] };

static METRICS: &[Measure<Caches>] = metrics! {
    #[main] cache.hit_ratio ["ratio", Higher, 3] "Cache hits",
        "Requests that the cache answered with an object that it had, without asking the origin, as a share of those that it did not answer by itself.",
        |c| c.hit_ratio();
    #[main] cache.joined_ratio ["ratio", Neither, 3] "Cache, joined",
        "The same of requests for which an object was on its way for another request.",
        |c| c.joined_ratio();
    cache.joined ["requests", Neither, 3] "Requests joined",
        "Requests for which an object was on its way for another request, whether or not all of it came.",
        |c| Some(c.joined());
    cache.revalidated ["requests", Neither, 3] "Requests revalidated",
        "Requests for which the cache asked the origin about an object that had expired, which was still valid (status 304).",
        |c| Some(c.revalidated());
    cache.misses ["requests", Lower, 3] "Cache misses",
        "Other requests for which the cache asked the origin, whether or not that answered.",
        |c| Some(c.misses());
    cache.requests ["requests", Neither, 3] "Cache, requests",
        "Requests that the cache answered, except those that it answered by itself.",
        |c| Some(c.answered());
    cache.errors ["requests", Lower, 3] "Cache, errors",
        "Answers of the cache with a status of 400 or more, the origin's included.",
        |c| Some(c.errors());
    cache.faults ["requests", Neither, 3] "Cache, faults",
        "Answers of the cache that a fault of the scenario changed.",
        |c| Some(c.faults());
    #[main] cache.origin_bytes ["B", Lower, 3] "From the origin",
        "Bytes of bodies that origins sent to the cache; null if not all of its connections have a row in table `flows`.",
        |c| c.origin_bytes();
    cache.viewer_bytes ["B", Neither, 3] "From the cache",
        "Bytes of bodies that the cache sent.",
        |c| Some(c.viewer_bytes());
    cache.origin_share ["ratio", Lower, 3] "From the origin, share",
        "Bytes of bodies that origins sent to the cache, as a share of those that it sent; null where `cache.origin_bytes` is.",
        |c| c.origin_share();
    cache.age_p50_ms ["ms", Neither, 3] "Age, median",
        "Age of the cache's answers when their heads were sent, median.",
        |c| c.ages().percentile(0.5);
    cache.age_max_ms ["ms", Neither, 3] "Age, maximum",
        "The same, greatest.",
        |c| c.ages().max();
};
