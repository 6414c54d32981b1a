//! Splits a text into words for comparison: without case, accents and plural endings.
//!
//! The words serve to find a record's name in a foreign text and must not be shown to people. Scripts without spaces
//! between words are cut into overlapping pairs. The result depends on the text alone.

/// Words that occur in every English or German mail and so distinguish no records. The list is sorted.
const STOP_WORDS: [&str; 48] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "das", "dem", "den", "der", "die", "ein", "eine", "for",
    "from", "has", "have", "im", "in", "is", "ist", "it", "its", "my", "not", "of", "on", "or", "our", "so", "that",
    "the", "their", "they", "this", "to", "und", "up", "was", "we", "will", "with", "you", "your", "zu",
];
/// The shortest word, in bytes, from which a final `s` is removed as a plural ending. In `bus` it is not one.
const MIN_PLURAL_LENGTH: usize = 4;

/// The text in lower case without accents.
#[must_use]
pub fn fold_text(text: &str) -> String {
    text.chars()
        .flat_map(char::to_lowercase)
        .filter(|c| !('\u{300}'..='\u{36f}').contains(c))
        .flat_map(strip_accent)
        .collect()
}

/// The folded words of a text in their order, without stop words.
#[must_use]
pub fn split_words(text: &str) -> Vec<String> {
    let folded = fold_text(text);
    let mut words = Vec::new();
    for run in folded.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let mut latin = String::new();
        let mut dense: Vec<char> = Vec::new();
        for c in run.chars() {
            if is_dense(c) {
                push_word(&mut words, &mut latin);
                dense.push(c);
            } else {
                push_pairs(&mut words, &mut dense);
                latin.push(c);
            }
        }
        push_word(&mut words, &mut latin);
        push_pairs(&mut words, &mut dense);
    }
    words
}

fn push_word(words: &mut Vec<String>, word: &mut String) {
    let has_two_letters = word.chars().nth(1).is_some();
    if has_two_letters && STOP_WORDS.binary_search(&word.as_str()).is_err() {
        let stem = word.strip_suffix('s').filter(|stem| !stem.ends_with('s') && stem.len() + 1 >= MIN_PLURAL_LENGTH);
        words.push(stem.unwrap_or(word).to_owned());
    }
    word.clear();
}

fn push_pairs(words: &mut Vec<String>, run: &mut Vec<char>) {
    match run.as_slice() {
        [] => {}
        [one] => words.push(one.to_string()),
        many => words.extend(many.windows(2).map(|pair| pair.iter().collect::<String>())),
    }
    run.clear();
}

/// Whether the character's script has no spaces between words.
fn is_dense(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3134f}')
}

/// A lower-case letter without its accent, in the usual transcription.
fn strip_accent(c: char) -> impl Iterator<Item = char> {
    let text = match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'æ' => "ae",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
        'œ' => "oe",
        'ŕ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ț' => "t",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => "",
    };
    let itself = text.is_empty().then_some(c);
    text.chars().chain(itself)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_without_case_accents_and_plurals() {
        for (text, expected) in [
            ("The Invoices, of MÜLLER!", vec!["invoice", "muller"]),
            ("Straße café cafe\u{301}", vec!["strasse", "cafe", "cafe"]),
            ("glass bus 4711 x", vec!["glass", "bus", "4711"]),
            ("renew-passport_2", vec!["renew", "passport"]),
            ("請求書です", vec!["請求", "求書", "書で", "です"]),
            ("Pay家", vec!["pay", "家"]),
            ("painter's", vec!["painter"]),
            ("", vec![]),
        ] {
            assert_eq!(split_words(text), expected, "{text}");
        }
    }

    #[test]
    fn the_list_of_common_words_is_sorted_for_its_search() {
        assert!(STOP_WORDS.is_sorted());
    }
}
