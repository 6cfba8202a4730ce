//! Numbers of things in sentences.

/// A number and what it counts: `1 game`, `2 games`, `3 entries`.
pub fn counted(number: u64, thing: &str) -> String {
    match (number, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        _ => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let found = [0, 1, 2].map(|number| counted(number, "game"));
        assert_eq!(found, ["0 games", "1 game", "2 games"]);
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted(7, "entry"), "7 entries");
    }
}
