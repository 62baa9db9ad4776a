//! Names of the control plane: whole, or a unique end after a dot.

/// Position of a name in a list.
pub(crate) fn find(all: &[&str], name: &str) -> Option<usize> {
    if let Some(exact) = all.iter().position(|known| *known == name) {
        return Some(exact);
    }
    let name = name.trim_start_matches('.');
    let mut ends = all.iter().enumerate().filter(|(_, known)| ends_with(known, name));
    match (ends.next(), ends.next()) {
        (Some((at, _)), None) => Some(at),
        _ => None,
    }
}

/// The name ends with whole parts of another.
fn ends_with(whole: &str, end: &str) -> bool {
    whole == end || whole.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'))
}
