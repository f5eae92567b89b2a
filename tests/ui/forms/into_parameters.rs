//! Calls that take whatever can be converted.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::path::PathBuf;
use std::rc::Rc;

use greenroom::prelude::*;

#[derive(Default)]
struct Names {
    all: Vec<String>,
}

#[actor]
impl Names {
    pub fn push(&mut self, #[into] name: String) -> usize {
        self.all.push(name);
        self.all.len()
    }

    pub fn open(
        &self,
        ctx: &mut Ctx<Self>,
        #[into] path: PathBuf,
        count: u8,
        #[greenroom::into] (first, _): (u16, u16),
    ) -> String {
        let _ = ctx;
        format!("{} {count} {first}", path.display())
    }

    #[message(local)]
    pub fn share(&self, #[into] name: Rc<str>) -> Rc<str> {
        name
    }

    #[message(boxed)]
    pub fn boxed(&self, #[into] name: String) -> usize {
        name.len()
    }
}

#[allow(dead_code)]
fn local(names: Local<Names>) {
    drop(names.share("shared"));
}

pub fn main() -> Result<(), greenroom::Error> {
    // The method itself takes what it says.
    assert_eq!(Names::default().push("x".to_owned()), 1);
    let system = System::start(1)?;
    system.block_on(async {
        let names = system.spawn_on(0, Names::default).await?;
        assert_eq!(names.push("text").await?, 1);
        assert_eq!(names.push('c').await?, 2);
        assert_eq!(names.push(String::from("string")).await?, 3);
        assert_eq!(names.open("a/b", 7, [1_u16, 2]).await?, "a/b 7 1");
        assert_eq!(names.boxed("four").await?, 4);
        Ok::<(), greenroom::Error>(())
    })
}
