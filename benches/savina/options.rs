//! The command line.

use std::time::Duration;

use crate::harness::Size;

pub const USAGE: &str =
    "usage: savina [NAME..] [--shards 1,2] [--spin MICROSECONDS] [--rounds N] [--small] [--peers]";

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    names: Vec<String>,
    pub shards: Vec<usize>,
    /// How long a shard watches for news before it sleeps, if not as by default.
    pub spin: Option<Duration>,
    pub rounds: usize,
    pub size: Size,
    pub with_peers: bool,
}

impl Options {
    pub fn parse(
        mut arguments: impl Iterator<Item = String>,
        known: &[&str],
    ) -> Result<Self, String> {
        let mut options = Self {
            names: Vec::new(),
            shards: vec![1, 2],
            spin: None,
            rounds: 3,
            size: Size::Suite,
            with_peers: false,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--small" => options.size = Size::Small,
                "--peers" => options.with_peers = true,
                "--spin" => {
                    let us = value()?;
                    let us = us.parse().map_err(|_| format!("{us} is no number"))?;
                    options.spin = Some(Duration::from_micros(us));
                }
                "--rounds" => options.rounds = number(&value()?)?,
                "--shards" => {
                    options.shards = value()?.split(',').map(number).collect::<Result<_, _>>()?;
                }
                name if known.contains(&name) => options.names.push(argument),
                _ => {
                    let known = known.join(" ");
                    return Err(format!(
                        "there is no {argument}; the benchmarks are: {known}"
                    ));
                }
            }
        }
        Ok(options)
    }

    pub fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or(format!("{text} is no number from 1"))
}
