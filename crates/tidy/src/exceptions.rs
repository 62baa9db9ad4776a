//! What is allowed in spite of a rule. These tables may only shrink.

/// Lines an entry may be below its allowance before the allowance has to be lowered.
pub const SLACK_LINES: usize = 5;

/// Files over the limit: path and present length in lines.
pub const LONG_FILES: &[(&str, usize)] = &[];

/// Functions over the limit: path, name and present length in lines.
pub const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[
    // One arm for each operation: cutting it would hide that the list is complete.
    ("crates/flexnic/src/p4/interpret.rs", "execute", 78),
];

/// Files of the simulated side that may use a hash map or set: path and why no iteration
/// order can reach a result.
pub const HASHED: &[(&str, &str)] = &[];
