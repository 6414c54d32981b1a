//! Brings the rows of the wikis in line with their files.
//!
//! The pages that changed are written in one transaction for each few hundred files, so that a reader sees a run as a
//! whole or not at all. A wiki that did not change costs a listing of its files and writes nothing.

use super::ScannedWiki;
use super::scan::{self, KnownPage, PageListing, PageRows, WikiChanges};
use crate::files::root::VaultRoot;
use crate::index::store::check::{DifferenceKind, IndexDifference};
use crate::index::store::files::ScanDepth;
use crate::index::store::rows::to_json;
use crate::index::store::sync::split_into_batches;
use crate::index::{Index, IndexError, VaultProblem};
use crate::wiki::create::{WIKIS_FOLDER, list_wikis};
use crate::wiki::folder::{FileStat, WikiFolder};
use sqlx::{AssertSqlSafe, SqliteConnection};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

/// How often a wiki is read anew because a run was committed meanwhile. The next scan tries again.
const TRIES: usize = 3;

pub(super) const FIND_WIKI: &str = "SELECT id FROM wikis WHERE name = ?1";
const PAGES: &str =
    "INSERT INTO wiki_pages (wiki, file, size, modified_ns, inode, hash, slug, kind, names, title, summary, tags)
    SELECT ?2, value->>'file', value->>'size', value->>'modified_ns', value->>'inode', value->>'hash', value->>'slug',
           value->>'kind', value->>'names', value->>'title', value->>'summary', value->>'tags' FROM json_each(?1)";
const PROVENANCE: &str = "INSERT INTO wiki_claim_provenance (page, claim, label, source)
    SELECT p.id, c.value->>'claim', c.value->>'label', c.value->>'source'
    FROM json_each(?1) f CROSS JOIN wiki_pages p ON p.wiki = ?2 AND p.file = f.value->>'file', json_each(f.value->'claims') c";
const DROP_PAGES: &str = "DELETE FROM wiki_pages WHERE wiki = ?2 AND file IN (SELECT value FROM json_each(?1))";
const DROP_WIKI: &str = "DELETE FROM wiki_pages WHERE wiki = ?1";
const KNOWN: &str = "SELECT file, size, modified_ns, inode, hash FROM wiki_pages WHERE wiki = ?1";

/// The statements about one full-text table.
pub(super) struct WordTable {
    id: i64,
}

impl WordTable {
    pub(super) fn new(id: i64) -> Self {
        Self { id }
    }

    /// The table of the words. It is split at what is no ASCII letter or digit and not ASCII at all, because the words are
    /// split and folded before, in the same way as without an index.
    fn create(&self) -> String {
        let id = self.id;
        format!(
            "CREATE VIRTUAL TABLE wiki_words_{id} USING fts5(text, content='', contentless_delete=1, tokenize='ascii');
             CREATE VIRTUAL TABLE wiki_vocabulary_{id} USING fts5vocab('wiki_words_{id}', 'row')"
        )
    }

    fn drop(&self) -> String {
        format!("DROP TABLE wiki_vocabulary_{0}; DROP TABLE wiki_words_{0}", self.id)
    }

    fn insert(&self) -> String {
        format!(
            "INSERT INTO wiki_words_{} (rowid, text) SELECT p.id, f.value->>'words'
             FROM json_each(?1) f CROSS JOIN wiki_pages p ON p.wiki = ?2 AND p.file = f.value->>'file'
             WHERE f.value->>'words' IS NOT NULL ORDER BY 1",
            self.id
        )
    }

    fn delete(&self) -> String {
        format!(
            "DELETE FROM wiki_words_{0} WHERE rowid IN (SELECT p.id FROM json_each(?1) f CROSS JOIN wiki_pages p
                ON p.wiki = ?2 AND p.file = f.value JOIN wiki_words_{0}_docsize s ON s.id = p.id)",
            self.id
        )
    }

    /// On how many pages each of the words stands and, without a word, how many there are.
    pub(super) fn count_holders(&self) -> String {
        format!(
            "SELECT term, doc FROM wiki_vocabulary_{0} WHERE term IN (SELECT value FROM json_each(?1))
             UNION ALL SELECT NULL, COUNT(*) FROM wiki_words_{0}_docsize",
            self.id
        )
    }

    /// The best of all pages for an expression. Of pages with the same rank as the last one any may be missing.
    pub(super) fn rank_some(&self) -> String {
        format!(
            "SELECT p.file, p.slug, p.title, p.kind, p.summary, h.score
             FROM (SELECT rowid AS id, -bm25(wiki_words_{0}) AS score FROM wiki_words_{0} WHERE wiki_words_{0} MATCH ?1
                ORDER BY score DESC LIMIT ?2) h JOIN wiki_pages p ON p.id = h.id
             ORDER BY h.score DESC, p.slug",
            self.id
        )
    }

    /// The best of all pages for an expression. Only those that are shown are looked up, and what has the same rank as the last of them.
    pub(super) fn rank_all(&self) -> String {
        format!(
            "WITH hits AS MATERIALIZED (SELECT rowid AS id, -bm25(wiki_words_{0}) AS score FROM wiki_words_{0} WHERE wiki_words_{0} MATCH ?1),
                least AS (SELECT MIN(score) AS score FROM (SELECT score FROM hits ORDER BY score DESC LIMIT ?2))
             SELECT p.file, p.slug, p.title, p.kind, p.summary, h.score
             FROM hits h JOIN wiki_pages p ON p.id = h.id WHERE h.score >= (SELECT score FROM least)
             ORDER BY h.score DESC, p.slug LIMIT ?2",
            self.id
        )
    }

    /// The best pages for an expression, of those that a filter means.
    pub(super) fn rank(&self) -> String {
        format!(
            "SELECT p.file, p.slug, p.title, p.kind, p.summary, -bm25(wiki_words_{0}) AS score
             FROM wiki_words_{0} w JOIN wiki_pages p ON p.id = w.rowid
             WHERE wiki_words_{0} MATCH ?1 AND (?2 IS NULL OR p.kind = ?2)
                AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(p.tags) WHERE value = ?3))
                AND (?4 IS NULL OR substr(p.file, 1, length(?4)) = ?4)
             ORDER BY score DESC, p.slug LIMIT ?5",
            self.id
        )
    }
}

impl Index {
    /// Brings the rows of one wiki of the vault in line with its files.
    ///
    /// # Errors
    /// [`IndexError`] if `state.db` fails, or the wiki cannot be read.
    pub async fn sync_wiki(&self, root: &VaultRoot, name: &str) -> Result<(), IndexError> {
        let _guard = self.scan_lock.lock().await;
        self.scan_wiki(root, name, &root.path().join(WIKIS_FOLDER).join(name), ScanDepth::Stat).await
    }

    /// Brings the rows of all wikis in line with their files. A wiki that cannot be read is a problem, and its rows stay.
    pub(crate) async fn scan_wikis(&self, root: &VaultRoot, depth: ScanDepth) -> Result<Vec<VaultProblem>, IndexError> {
        let wikis = match find_wikis(root).await? {
            Ok(wikis) => wikis,
            Err(e) => {
                let message = format!("{e}: make it a folder that the user who runs Steward may read");
                return Ok(vec![VaultProblem { path: format!("{WIKIS_FOLDER}/"), message }]);
            }
        };
        self.forget_other_wikis(&wikis).await?;
        let mut problems = Vec::new();
        for (name, folder) in wikis {
            match self.scan_wiki(root, &name, &folder, depth).await {
                Err(IndexError::Io { source, .. }) => {
                    problems.push(VaultProblem { path: format!("{WIKIS_FOLDER}/{name}"), message: source.to_string() });
                }
                scanned => scanned?,
            }
        }
        Ok(problems)
    }

    async fn scan_wiki(&self, root: &VaultRoot, name: &str, folder: &Path, depth: ScanDepth) -> Result<(), IndexError> {
        let failed = |source| IndexError::Io { path: folder.to_owned(), source };
        let id = self.find_or_add_wiki(name).await?;
        let wiki = Arc::new(WikiFolder::open(folder).map_err(failed)?);
        for _ in 0..TRIES {
            let (own_root, own_wiki) = (root.clone(), Arc::clone(&wiki));
            let list = move || PageListing::read(&own_root, &own_wiki);
            let Some(listing) = tokio::task::spawn_blocking(list).await?.map_err(failed)? else { return Ok(()) };
            let scanned = ScannedWiki { id, digest: listing.digest() };
            if depth == ScanDepth::Stat && self.lock_scanned_wikis().get(name) == Some(&scanned) {
                return Ok(());
            }
            let known = self.read_known_pages(id).await?;
            let changes = listing.compare(&known, depth != ScanDepth::Stat);
            let is_same = changes.to_read.is_empty() && changes.gone.is_empty();
            if is_same || self.write_changes(root, &wiki, id, changes, depth, &known).await? {
                self.lock_scanned_wikis().insert(name.to_owned(), scanned);
                return Ok(());
            }
        }
        Ok(())
    }

    fn lock_scanned_wikis(&self) -> MutexGuard<'_, BTreeMap<String, ScannedWiki>> {
        self.scanned_wikis.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the changed files and writes their rows. Returns whether nothing was committed meanwhile.
    async fn write_changes(
        &self,
        root: &VaultRoot,
        wiki: &Arc<WikiFolder>,
        id: i64,
        mut changes: WikiChanges,
        depth: ScanDepth,
        known: &HashMap<String, KnownPage>,
    ) -> Result<bool, IndexError> {
        let failed = |source| IndexError::Io { path: wiki.path().to_owned(), source };
        let batches = split_into_batches(std::mem::take(&mut changes.to_read));
        let count = batches.len().max(1);
        let mut batches = batches.into_iter();
        for _ in 0..count {
            let batch = batches.next().unwrap_or_default();
            let own_wiki = Arc::clone(wiki);
            let mut rows = tokio::task::spawn_blocking(move || scan::read_pages(&own_wiki, &batch)).await?;
            if depth == ScanDepth::Content {
                rows.retain(|row| known.get(&row.file).is_none_or(|known| known.hash != row.hash));
            }
            if !scan::is_unchanged_since(root, wiki, &changes).map_err(failed)? {
                return Ok(false);
            }
            self.write_pages(id, &rows, &std::mem::take(&mut changes.gone)).await?;
        }
        Ok(true)
    }

    async fn find_or_add_wiki(&self, name: &str) -> Result<i64, IndexError> {
        if let Some(id) = self.find_wiki_id(name).await? {
            return Ok(id);
        }
        let mut tx = self.begin_write().await?;
        let work = async {
            // Another process may have added it meanwhile.
            if let Some(id) = sqlx::query_scalar(FIND_WIKI).bind(name).fetch_optional(&mut *tx).await? {
                return Ok(id);
            }
            let add = sqlx::query_scalar("INSERT INTO wikis (name) VALUES (?1) RETURNING id").bind(name);
            let id: i64 = add.fetch_one(&mut *tx).await?;
            sqlx::raw_sql(AssertSqlSafe(WordTable::new(id).create())).execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(id)
        };
        work.await.map_err(|e| self.sql_error(e))
    }

    pub(super) async fn find_wiki_id(&self, name: &str) -> Result<Option<i64>, IndexError> {
        let find = sqlx::query_scalar(FIND_WIKI).bind(name).fetch_optional(&self.store.reader);
        find.await.map_err(|e| self.sql_error(e))
    }

    async fn read_known_pages(&self, id: i64) -> Result<HashMap<String, KnownPage>, IndexError> {
        type Columns = (String, i64, i64, i64, Option<String>);
        let read = sqlx::query_as(KNOWN).bind(id).fetch_all(&self.store.writer);
        let rows: Vec<Columns> = read.await.map_err(|e| self.sql_error(e))?;
        let known = rows.into_iter().map(|(file, size, modified_ns, inode, hash)| {
            let stat = FileStat { size: size.cast_unsigned(), modified_ns, inode: inode.cast_unsigned() };
            (file, KnownPage { stat, hash })
        });
        Ok(known.collect())
    }

    async fn write_pages(&self, id: i64, rows: &[PageRows], gone: &[String]) -> Result<(), IndexError> {
        let stale: Vec<&str> =
            rows.iter().map(|row| row.file.as_str()).chain(gone.iter().map(String::as_str)).collect();
        if stale.is_empty() {
            return Ok(());
        }
        let words = WordTable::new(id);
        let mut tx = self.begin_write().await?;
        let work = async {
            let (stale, rows) = (to_json(&stale), to_json(&rows));
            execute(&mut tx, words.delete(), &stale, id).await?;
            execute(&mut tx, DROP_PAGES.to_owned(), &stale, id).await?;
            execute(&mut tx, PAGES.to_owned(), &rows, id).await?;
            execute(&mut tx, PROVENANCE.to_owned(), &rows, id).await?;
            execute(&mut tx, words.insert(), &rows, id).await?;
            tx.commit().await
        };
        work.await.map_err(|e| self.sql_error(e))
    }

    /// Removes the rows of wikis that are not in the vault any more.
    async fn forget_other_wikis(&self, wikis: &[(String, PathBuf)]) -> Result<(), IndexError> {
        self.lock_scanned_wikis().retain(|name, _| wikis.iter().any(|(wiki, _)| wiki == name));
        let read = sqlx::query_as("SELECT id, name FROM wikis").fetch_all(&self.store.writer);
        let known: Vec<(i64, String)> = read.await.map_err(|e| self.sql_error(e))?;
        for (id, _) in known.into_iter().filter(|(_, name)| wikis.iter().all(|(wiki, _)| wiki != name)) {
            let mut tx = self.begin_write().await?;
            let work = async {
                sqlx::query(DROP_WIKI).bind(id).execute(&mut *tx).await?;
                sqlx::raw_sql(AssertSqlSafe(WordTable::new(id).drop())).execute(&mut *tx).await?;
                sqlx::query("DELETE FROM wikis WHERE id = ?1").bind(id).execute(&mut *tx).await?;
                tx.commit().await
            };
            work.await.map_err(|e| self.sql_error(e))?;
        }
        Ok(())
    }

    /// Lists the pages about which the index is wrong. Every file is read.
    pub(crate) async fn compare_wikis(&self, root: &VaultRoot) -> Result<Vec<IndexDifference>, IndexError> {
        let mut found = Vec::new();
        for (name, folder) in find_wikis(root).await?.unwrap_or_default() {
            let mut known = match self.find_wiki_id(&name).await? {
                Some(id) => self.read_known_pages(id).await?,
                None => HashMap::new(),
            };
            let read = move || -> io::Result<Vec<(String, Option<String>)>> {
                let wiki = WikiFolder::open(&folder)?;
                let hash = |file: String| (scan::hash_file(&wiki, &file), file);
                Ok(wiki.list_page_files().into_iter().map(hash).map(|(hash, file)| (file, hash)).collect())
            };
            let Ok(files) = tokio::task::spawn_blocking(read).await? else { continue };
            let path = |file: &str| format!("{WIKIS_FOLDER}/{name}/{file}");
            for (file, hash) in files {
                let differs = match known.remove(&file) {
                    None => DifferenceKind::NotIndexed,
                    Some(known) if known.hash != hash => DifferenceKind::Content,
                    Some(_) => continue,
                };
                found.push(IndexDifference { path: path(&file), differs });
            }
            let mut gone: Vec<String> = known.into_keys().collect();
            gone.sort();
            found.extend(gone.iter().map(|file| IndexDifference { path: path(file), differs: DifferenceKind::Gone }));
        }
        Ok(found)
    }
}

async fn find_wikis(root: &VaultRoot) -> Result<io::Result<Vec<(String, PathBuf)>>, IndexError> {
    let root = root.clone();
    Ok(tokio::task::spawn_blocking(move || list_wikis(&root)).await?)
}

async fn execute(tx: &mut SqliteConnection, sql: String, rows: &str, wiki: i64) -> sqlx::Result<()> {
    sqlx::query(AssertSqlSafe(sql)).bind(rows).bind(wiki).execute(tx).await.map(drop)
}
