//! A world with a change, a proposal and a dashboard, and a browser on it.

use steward_tests::api::{self, Api};
use steward_tests::browser::Browser;
use steward_tests::steward::Running;
use steward_tests::vault::Signal;
use steward_tests::world::World;

/// What a journey through the pages needs.
pub(crate) struct House {
    pub(crate) browser: Browser,
    pub(crate) world: World,
    pub(crate) api: Api,
    pub(crate) up: Running,
}

/// A task `<name>` that will be done, and its signal.
pub(crate) fn clear(world: &World, name: &str) {
    world.vault.task(name, "house");
    world.vault.signal(&format!("s-{name}"), &Signal::done(name));
}

/// A task whose change will wait for a person, because its source is unknown and not certain enough.
pub(crate) fn unclear(world: &World, name: &str) {
    world.vault.task(name, "house");
    world.vault.signal(&format!("s-{name}"), &Signal { effect_confidence: 0.9, ..Signal::done(name) });
}

impl House {
    /// Two done tasks, `rent` and `bills`, and two that wait, `roof` and `desk`. One person is logged in.
    pub(crate) async fn lived_in(test: &str) -> Option<Self> {
        Self::lived_in_with(test, &[]).await
    }

    /// The same, with more waiting tasks.
    pub(crate) async fn lived_in_with(test: &str, more: &[&str]) -> Option<Self> {
        let world = World::new().await.live();
        world.vault.matter("house");
        for (done, waits) in [("rent", "roof"), ("bills", "desk")] {
            clear(&world, done);
            unclear(&world, waits);
        }
        for name in more {
            unclear(&world, name);
        }
        let house = Self::of(test, world).await?;
        house.world.tick("house").await;
        house.browser.log_in(&api::link(&house.up)).await;
        Some(house)
    }

    /// A dashboard of this world, without a login.
    pub(crate) async fn of(test: &str, world: World) -> Option<Self> {
        // The browser comes first: without one there is nothing to do.
        let mut browser = Browser::open(test, "").await?;
        let (up, api) = api::up(&world).await;
        browser.moves_to(&api.base);
        Some(Self { browser, world, api, up })
    }

    /// Another person, logged in.
    pub(crate) async fn another(&self) -> Browser {
        let other = self.browser.another().await;
        let login = self.world.json(&["login"]).await;
        other.log_in(login["link"].as_str().unwrap()).await;
        other
    }

    /// The id of the newest decision about a task.
    pub(crate) fn action(&self, task: &str) -> String {
        let target = format!("task/{task}.md");
        let records = self.world.vault.records();
        let of = records.iter().rev().find(|r| r.draft.target.as_str() == target && r.draft.resolution.is_none());
        of.unwrap_or_else(|| panic!("nothing was decided about {task}")).draft.id.to_string()
    }

    /// The form below the card of a task, as a selector.
    pub(crate) fn card(&self, task: &str) -> String {
        format!("#a{}", self.action(task))
    }

    /// Gives a reason on the card of a task, where it is folded.
    pub(crate) async fn give_reason(&self, task: &str, reason: &str) {
        let card = self.card(task);
        self.browser.find(&format!("{card} details.more summary")).await.click().await.unwrap();
        self.browser.types(&format!("{card} .reason input"), reason).await;
    }

    /// Who resolved it, how, and why.
    pub(crate) fn answer(&self, action: &str) -> (String, String, Option<String>) {
        let records = self.world.vault.records();
        let mut of =
            records.iter().filter(|r| r.draft.resolution.as_ref().is_some_and(|a| a.action_id.as_str() == action));
        let (one, more) = (of.next().unwrap_or_else(|| panic!("{action} has no answer")), of.count());
        assert_eq!(more, 0, "{action} has more than one answer");
        let answer = one.draft.resolution.clone().unwrap();
        (one.draft.kind.as_str().to_owned(), answer.by, answer.reason)
    }
}
