//! A connection.
//!
//! The actor has the writing half; what is read comes to it, line by line, from a task with the reading half, which reads on when
//! the last line was dealt with. What is said in the room comes through a subscription with a bound: while the client does not
//! read, lines wait there, and then the oldest are lost. Nobody else notices.

use std::time::Duration;

use greenroom::News;
use greenroom::prelude::*;
use greenroom::runtime::net::{OwnedReadHalf, OwnedWriteHalf, TcpStream};
use greenroom::runtime::{JoinHandle, spawn, time};

use crate::lines::Lines;
use crate::room::{Line, Room};

/// Lines that wait for a client that does not read.
const BACKLOG: usize = 64;

/// A client that takes nothing for so long is not there any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much is read at once.
const READ_BYTES: usize = 1024;

/// One client.
pub(crate) struct Session {
    nick: String,
    rooms: Keyed<String, Room>,
    seat: Option<Seat>,
    writer: OwnedWriteHalf,
    /// Taken by the task that reads.
    reader: Option<OwnedReadHalf>,
    reading: Option<Reading>,
}

impl Session {
    pub(crate) fn new(stream: TcpStream, nick: String, rooms: Keyed<String, Room>) -> Self {
        let (reader, writer) = stream.into_split();
        Session {
            nick,
            rooms,
            seat: None,
            writer,
            reader: Some(reader),
            reading: None,
        }
    }

    /// Writes a line, however long the client takes to read it, unless that is too long.
    async fn write(&mut self, line: &str, ctx: &Ctx<Self>) {
        let line = format!("{line}\n").into_bytes();
        let written = time::timeout(PATIENCE, self.writer.write_all(line)).await;
        if !written.is_ok_and(|(written, _)| written.is_ok()) {
            ctx.stop_now();
        }
    }

    async fn enter(&mut self, room: &str, ctx: &Ctx<Self>) {
        self.leave(ctx).await;
        match self.rooms.at(room).enter(self.nick.clone()).await {
            Ok(lines) => {
                ctx.subscribe(&lines, BACKLOG, |me, news| me.hear(news));
                self.seat = Some(Seat {
                    room: room.to_owned(),
                    nick: self.nick.clone(),
                    rooms: self.rooms.clone(),
                    lines,
                });
                self.write(&format!("* you are in {room}"), ctx).await;
            }
            Err(error) => {
                self.write(&format!("* no way into {room}: {error}"), ctx)
                    .await;
            }
        }
    }

    async fn leave(&mut self, ctx: &Ctx<Self>) {
        if let Some(seat) = self.seat.take() {
            ctx.unsubscribe(&seat.lines);
            let room = seat.room.clone();
            drop(seat);
            self.write(&format!("* you left {room}"), ctx).await;
        }
    }
}

#[actor(mailbox = 16)]
impl Session {
    #[on(started)]
    async fn started(&mut self, ctx: &mut Ctx<Self>) {
        let reader = self.reader.take().expect("started once");
        self.reading = Some(Reading(spawn(read_all(reader, ctx.addr()))));
        let greeting = format!(
            "* welcome, {}: /nick NAME, /join ROOM, /who, /leave, /quit",
            self.nick
        );
        self.write(&greeting, ctx).await;
    }

    /// The client has sent a line.
    pub(crate) async fn said(&mut self, line: String, ctx: &mut Ctx<Self>) {
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match (command, &self.seat) {
            ("/quit", _) => ctx.stop_now(),
            ("/nick", _) if !rest.is_empty() => {
                self.nick = rest.to_owned();
                if let Some(seat) = &self.seat {
                    let room = seat.room.clone();
                    self.enter(&room, ctx).await;
                }
            }
            ("/join", _) if !rest.is_empty() => self.enter(rest, ctx).await,
            ("/leave", Some(_)) => self.leave(ctx).await,
            ("/who", Some(seat)) => {
                let who = self.rooms.at(&seat.room).who().await;
                self.write(&format!("* {}", who.unwrap_or_default()), ctx)
                    .await;
            }
            (_, Some(seat)) if !command.starts_with('/') => {
                let said = self.rooms.at(&seat.room).say(self.nick.clone(), line);
                if said.tell().await.is_err() {
                    self.write("* the room is closed", ctx).await;
                }
            }
            _ => {
                self.write("* what? /nick NAME, /join ROOM, /who, /leave, /quit", ctx)
                    .await;
            }
        }
    }

    /// Something was said in the room.
    pub(crate) async fn hear(&mut self, news: News<Line>, ctx: &mut Ctx<Self>) {
        match news {
            News::Value(line) => self.write(&line, ctx).await,
            News::Missed(count) => {
                self.write(&format!("* you missed {count} lines"), ctx)
                    .await;
            }
        }
    }

    /// The client will send no more.
    pub(crate) fn hung_up(&mut self, ctx: &mut Ctx<Self>) {
        ctx.stop_now();
    }
}

/// Reads until the client, or the session, has had enough.
async fn read_all(mut reader: OwnedReadHalf, session: Addr<Session>) {
    let mut lines = Lines::default();
    let mut buffer = Vec::with_capacity(READ_BYTES);
    loop {
        let (read, filled) = reader.read(buffer).await;
        let Ok(1..) = read else {
            break;
        };
        for line in lines.read(&filled) {
            if session.said(line).await.is_err() {
                return;
            }
        }
        buffer = filled;
        buffer.clear();
    }
    // It may have ended already.
    let _ = session.hung_up().tell().await;
}

/// The task that reads; it ends with the session.
struct Reading(JoinHandle<()>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A place in a room; the room hears when it is given up, however the session ends.
struct Seat {
    room: String,
    nick: String,
    rooms: Keyed<String, Room>,
    lines: greenroom::Topic<Line>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let (room, nick) = (
            std::mem::take(&mut self.room),
            std::mem::take(&mut self.nick),
        );
        let rooms = self.rooms.clone();
        spawn(async move {
            // A room that is gone needs not know.
            let _ = rooms.at(&room).leave(nick).tell().await;
        })
        .detach();
    }
}
