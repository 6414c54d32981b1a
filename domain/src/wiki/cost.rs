//! What the pages of a wiki cost, beside what answering from its sources alone would.
//!
//! It only informs. The tokens of ingests are those of their writer, as the audit records have them. What one question to all
//! sources would take is estimated by their characters.

use crate::steward::clerk::TokenUsage;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many characters of a text are about one token.
const TOKEN_CHARACTERS: u64 = 4;

/// What the ingests of a source took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceCost {
    /// Its id.
    pub source: String,
    pub tokens: TokenUsage,
}

/// What the pages of a wiki cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WikiCost {
    /// By id. A source of which fixed rules made pages took no token, and is left out.
    pub sources: Vec<SourceCost>,
    /// All of them.
    pub tokens: TokenUsage,
    /// About what one question to the texts of all sources would take.
    pub question_tokens: u64,
}

impl WikiCost {
    /// The cost of these ingests, beside sources of so many characters.
    #[must_use]
    pub fn new(ingests: impl IntoIterator<Item = SourceCost>, characters: u64) -> Self {
        let mut sources: BTreeMap<String, TokenUsage> = BTreeMap::new();
        let mut all = TokenUsage::default();
        for SourceCost { source, tokens } in ingests {
            let known = sources.entry(source).or_default();
            for sum in [known, &mut all] {
                sum.prompt_tokens += tokens.prompt_tokens;
                sum.completion_tokens += tokens.completion_tokens;
            }
        }
        let sources = sources.into_iter().map(|(source, tokens)| SourceCost { source, tokens }).collect();
        Self { sources, tokens: all, question_tokens: characters.div_ceil(TOKEN_CHARACTERS) }
    }

    /// What a source took on average, in and out; 0 if none took any.
    #[must_use]
    pub fn tokens_per_source(&self) -> u64 {
        let sources = self.sources.len().max(1) as u64;
        (self.tokens.prompt_tokens + self.tokens.completion_tokens) / sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ingests_of_a_source_are_added_up() {
        let ingest = |source: &str, prompt_tokens| SourceCost {
            source: source.to_owned(),
            tokens: TokenUsage { prompt_tokens, completion_tokens: 10 },
        };
        let cost = WikiCost::new([ingest("lease", 100), ingest("letter", 30), ingest("lease", 50)], 4_001);
        let shown: Vec<(&str, u64, u64)> = cost
            .sources
            .iter()
            .map(|it| (it.source.as_str(), it.tokens.prompt_tokens, it.tokens.completion_tokens))
            .collect();
        assert_eq!(shown, [("lease", 150, 20), ("letter", 30, 10)]);
        assert_eq!((cost.tokens.prompt_tokens, cost.tokens_per_source(), cost.question_tokens), (180, 105, 1_001));
        let nothing = WikiCost::new([], 0);
        assert_eq!((nothing.tokens_per_source(), nothing.question_tokens), (0, 0));
    }
}
