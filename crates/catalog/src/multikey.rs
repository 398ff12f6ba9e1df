//! The components of an indexed path at which documents have had arrays.
//!
//! In the path `a.b.c` the components are `a` (0), `b` (1) and `c` (2). The document `{a: [{b: {c: 1}}]}` has
//! an array at component 0. An array that a path goes into by a number, as `a.0` does, gives one key and does
//! not count.
//!
//! Components from the 64th on share one bit: an array at one of them counts as one at each.
//!
//! A wildcard index has no path of its own. Its bits are a filter of the whole paths at which arrays stood:
//! each path has two of 64 bits, by its hash. A bit that is not set proves that its paths met no array.

/// See the module's head. It grows by a union, and never shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multikey(u64);

/// The bit that stands for all further components.
const LAST_COMPONENT: usize = 63;

impl Multikey {
    /// No document has had an array on the path.
    pub const NO: Multikey = Multikey(0);

    /// An array at one component.
    pub fn at(component: usize) -> Multikey {
        Multikey(1 << component.min(LAST_COMPONENT))
    }

    /// An array may have been at any component of a path.
    pub fn anywhere(path: &str) -> Multikey {
        (0..path.split('.').count()).map(Multikey::at).fold(Multikey::NO, Multikey::union)
    }

    /// The bits of an array at a whole path, in a wildcard index. Stores keep these bits, so the hash stays
    /// as it is: FNV-1a of 64 bits, mixed once more because short paths differ little in it.
    pub fn of_array_path(path: &str) -> Multikey {
        let hash = path.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Multikey((1 << (mixed >> 58)) | (1 << ((mixed >> 52) & 63)))
    }

    /// Where a path may have met arrays, by the bits of a wildcard index.
    #[must_use]
    pub fn of_path(self, path: &str) -> Multikey {
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        let met = ends.enumerate().filter(|(_, end)| self.includes(Multikey::of_array_path(&path[..*end])));
        met.map(|(component, _)| Multikey::at(component)).fold(Multikey::NO, Multikey::union)
    }

    /// The components of both.
    #[must_use]
    pub fn union(self, other: Multikey) -> Multikey {
        Multikey(self.0 | other.0)
    }

    /// Whether there is a component.
    pub fn has_arrays(self) -> bool {
        self.0 != 0
    }

    /// Whether a component is among them.
    pub fn contains(self, component: usize) -> bool {
        self.includes(Multikey::at(component))
    }

    /// Whether one of them is this component or a later one.
    pub fn has_arrays_from(self, component: usize) -> bool {
        self.0 >> component.min(LAST_COMPONENT) != 0
    }

    /// Whether all components of the other are among them.
    pub fn includes(self, other: Multikey) -> bool {
        self.0 | other.0 == self.0
    }

    /// The prefixes of the path that end at one of the components, the shortest first.
    pub fn array_paths(self, path: &str) -> impl Iterator<Item = &str> {
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        ends.enumerate().filter(move |(component, _)| self.contains(*component)).map(|(_, end)| &path[..end])
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn of_bits(bits: u64) -> Multikey {
        Multikey(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_paths_are_prefixes_of_the_path() {
        let paths = |multikey: Multikey| multikey.array_paths("a.b.c").collect::<Vec<_>>();
        assert_eq!(paths(Multikey::NO), [""; 0]);
        assert_eq!(paths(Multikey::at(0).union(Multikey::at(2))), ["a", "a.b.c"]);
        assert_eq!(paths(Multikey::anywhere("a.b.c")), ["a", "a.b", "a.b.c"]);
        assert!(Multikey::anywhere("a.b").includes(Multikey::at(1)));
        assert!(!Multikey::at(1).includes(Multikey::anywhere("a.b")));
        assert!(Multikey::at(1).has_arrays_from(1) && !Multikey::at(1).has_arrays_from(2));
    }

    #[test]
    fn a_wildcard_index_knows_the_paths_that_met_no_array() {
        let bits = Multikey::of_array_path("a.b").union(Multikey::of_array_path("x"));
        assert!(bits.of_path("a.b.c").contains(1) && bits.of_path("x").contains(0));
        assert_eq!(Multikey::NO.of_path("a.b.c"), Multikey::NO);
        assert_eq!(Multikey::of_array_path("a.b"), Multikey((1 << 55) | (1 << 5)), "stores keep these bits");
    }

    #[test]
    fn far_components_share_a_bit() {
        let path = vec!["x"; 100].join(".");
        let far = Multikey::at(80);
        assert!(far.contains(99) && !far.contains(62) && Multikey::anywhere(&path).includes(far));
        assert!(far.has_arrays_from(90) && !Multikey::at(62).has_arrays_from(63));
        assert_eq!(far.array_paths(&path).count(), 37);
    }
}
