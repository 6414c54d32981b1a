//! What a person meant who wrote something else: the most similar name of those that there are.
//!
//! It only words a suggestion. Nothing is ever done with a name that was not written.

/// From which similarity on a name is taken for what was meant, from 0 to 1 by Jaro and Winkler.
const ALIKE: f64 = 0.85;

/// The name that is most like a text, if one is like it.
pub(crate) fn find_alike(text: &str, names: impl IntoIterator<Item = String>) -> Option<String> {
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(text, &name), name));
    let alike = scored.filter(|(score, _)| *score >= ALIKE);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

/// A message of serde that lists all keys, with the one that was meant in place of the list, if one is like it.
pub(crate) fn name_the_meant_key(message: &str) -> String {
    let named = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let Some((bare, choices)) = message.split_once(", expected one of ") else { return message.to_owned() };
    let meant = named(bare).last().and_then(|given| find_alike(given, named(choices)));
    meant.map_or_else(|| message.to_owned(), |meant| format!("{bare}; did you mean `{meant}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_key_that_was_meant_or_else_all() {
        let message =
            |key: &str| format!("streams.mail: unknown field `{key}`, expected one of `host`, `port`, `password_file`");
        assert_eq!(
            name_the_meant_key(&message("pasword_file")),
            "streams.mail: unknown field `pasword_file`; did you mean `password_file`?"
        );
        assert_eq!(name_the_meant_key(&message("state")), message("state"));
    }

    #[test]
    fn the_most_similar_name_is_found_and_no_other_is_forced() {
        let names = || ["hollins-snag-list", "hollins-final-payment", "desk-order-oak"].map(str::to_owned);
        assert_eq!(find_alike("hollins-final-paymnt", names()).as_deref(), Some("hollins-final-payment"));
        assert_eq!(find_alike("xyzzy", names()), None);
    }
}
