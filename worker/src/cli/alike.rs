//! What a person meant who wrote something else.

/// From which similarity on a name is taken for what was meant, from 0 to 1 by Jaro and Winkler.
const ALIKE: f64 = 0.85;

/// The name that is most like a text, if one is like it.
pub(crate) fn find_alike(text: &str, names: impl IntoIterator<Item = String>) -> Option<String> {
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(text, &name), name));
    let alike = scored.filter(|(score, _)| *score >= ALIKE);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_found_and_no_other_is_forced() {
        let names = || ["hollins-snag-list", "hollins-final-payment", "desk-order-oak"].map(str::to_owned);
        assert_eq!(find_alike("hollins-final-paymnt", names()).as_deref(), Some("hollins-final-payment"));
        assert_eq!(find_alike("xyzzy", names()), None);
    }
}
