//! A room: who is there, and a topic for what is said.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom::prelude::*;
use greenroom::{CrowdError, Handle, Topic};

/// What is heard in a room. A copy for each listener costs a count.
pub(crate) type Line = Arc<str>;

/// Started when somebody comes, gone when nobody is left.
#[derive(Debug)]
pub(crate) struct Room {
    lines: Topic<Line>,
    /// By nick, how often.
    guests: BTreeMap<String, u32>,
}

impl Room {
    /// The topic has the room's name: should the actor be replaced, those who listen stay.
    pub(crate) fn open(name: &str, system: &Handle) -> Result<Self, CrowdError> {
        Ok(Room {
            lines: system.topic(&format!("room {name}"))?,
            guests: BTreeMap::new(),
        })
    }

    fn publish(&self, line: String) {
        // Never waits for anybody.
        self.lines.publish(line.into());
    }
}

#[actor]
impl Room {
    /// Lets somebody in; what is said is heard in the topic.
    pub(crate) fn enter(&mut self, nick: String) -> Topic<Line> {
        self.publish(format!("* {nick} is here"));
        *self.guests.entry(nick).or_default() += 1;
        self.lines.clone()
    }

    pub(crate) fn leave(&mut self, nick: String, ctx: &mut Ctx<Self>) {
        if let Some(count) = self.guests.get_mut(&nick) {
            *count -= 1;
            if *count == 0 {
                self.guests.remove(&nick);
            }
        }
        self.publish(format!("* {nick} has left"));
        if self.guests.is_empty() {
            ctx.passivate();
        }
    }

    pub(crate) fn say(&mut self, nick: String, text: String) {
        self.publish(format!("{nick}: {text}"));
    }

    pub(crate) fn who(&self) -> String {
        let nicks: Vec<_> = self.guests.keys().map(String::as_str).collect();
        nicks.join(" ")
    }
}
