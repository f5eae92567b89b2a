//! Messages called like the methods of the `Actor` trait, which is in scope, and of other traits.

#![forbid(unsafe_code)]
#![deny(warnings)]

#[allow(unused_imports)]
use greenroom::Actor as _;
use greenroom::prelude::*;

trait Other {
    fn get(&mut self) -> &'static str;
}

struct Named(u8);

impl Other for Named {
    fn get(&mut self) -> &'static str {
        "not this one"
    }
}

#[actor]
impl Named {
    pub fn dispatch(&self) -> u8 {
        self.0
    }

    pub async fn dispatch_now(&self) -> u8 {
        self.0
    }

    pub fn get(&self) -> u8 {
        self.0
    }

    pub fn port(&self) -> u8 {
        self.0
    }

    pub fn from_port(&mut self, port: u8) -> u8 {
        port
    }

    pub fn stop(&mut self) -> u8 {
        self.0
    }

    pub fn local(&self) -> u8 {
        self.0
    }

    #[on(started)]
    async fn started(&self) -> Result<(), String> {
        Ok(())
    }

    #[on(stopping)]
    fn stopping(&self) {}
}

async fn calls(address: Addr<Named>) {
    let _: u8 = address.dispatch().await.unwrap();
    let _: u8 = address.dispatch_now().await.unwrap();
    let _: u8 = address.get().await.unwrap();
    let _: u8 = address.port().await.unwrap();
    let _: u8 = address.from_port(1).await.unwrap();
    let _: u8 = address.stop().await.unwrap();
    let _: u8 = address.local().await.unwrap();
}

fn main() {
    let _ = calls;
    assert_eq!(Other::get(&mut Named(1)), "not this one");
}
