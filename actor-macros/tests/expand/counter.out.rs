#[allow(
    clippy::future_not_send,
    clippy::missing_const_for_fn,
    clippy::must_use_candidate,
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    clippy::unused_async,
    clippy::unused_self
)]
impl Counter {
    #[doc = " Adds `by` and returns the new total."]
    pub fn add(&mut self, by: u64) -> u64 {
        self.total += by;
        self.total
    }
    pub async fn take(&mut self, by: u64, ctx: &mut Ctx<Self>) -> Result<u64, String> {
        self.total = self.total.checked_sub(by).ok_or("too little")?;
        Ok(self.total)
    }
    pub fn tag(&mut self, tag: Rc<str>, done: Reply<usize>) {
        done.send(tag.len());
    }
    async fn open(&mut self) {}
    fn helper(&self) {}
}
#[doc(hidden)]
#[allow(
    dead_code,
    deprecated,
    non_camel_case_types,
    non_snake_case,
    unreachable_code,
    clippy::all,
    clippy::pedantic,
    clippy::future_not_send
)]
const _: () = {
    use ::greenroom::__rt;
    pub enum __CounterMsg {
        add(__rt::Cross<u64>, __rt::CrossReply<u64>),
        take(__rt::Cross<u64>, __rt::CrossReply<Result<u64, String>>),
    }
    pub enum __CounterLocalMsg {
        __Shared(__CounterMsg),
        tag(Rc<str>, __rt::Reply<usize>),
    }
    #[automatically_derived]
    impl __rt::From<__CounterMsg> for __CounterLocalMsg {
        #[inline]
        fn from(msg: __CounterMsg) -> Self {
            Self::__Shared(msg)
        }
    }
    pub struct __CounterClient<__P>(__P);
    #[automatically_derived]
    impl<__P: __rt::Way> __rt::Clone for __CounterClient<__P> {
        #[inline]
        fn clone(&self) -> Self {
            *self
        }
    }
    #[automatically_derived]
    impl<__P: __rt::Way> __rt::Copy for __CounterClient<__P> {}
    #[automatically_derived]
    impl<__P: __rt::Way> __rt::FromPort<__P> for __CounterClient<__P> {
        #[inline]
        fn from_port(port: __P) -> Self {
            Self(port)
        }
        #[inline]
        fn port(&self) -> __P {
            self.0
        }
    }
    impl<__P: __rt::Way<Actor = Counter>> __CounterClient<__P> {
        #[doc = " Adds `by` and returns the new total."]
        pub fn add(&self, by: u64) -> <__P as __rt::Way>::Call<__rt::Plain<u64>, (u64,), __call_add>
        where
            (u64,): __rt::Suits<__P>,
        {
            __rt::Way::call::<_, _, __call_add>(self.0, (by,))
        }
        pub fn take(
            &self,
            by: u64,
        ) -> <__P as __rt::Way>::Call<__rt::Flat<Result<u64, String>>, (u64,), __call_take>
        where
            (u64,): __rt::Suits<__P>,
        {
            __rt::Way::call::<_, _, __call_take>(self.0, (by,))
        }
        pub fn tag<__L>(
            &self,
            tag: Rc<str>,
        ) -> <__L as __rt::Way>::Call<__rt::Plain<usize>, (Rc<str>,), __call_tag>
        where
            __P: __rt::SameShard<__L>,
            __L: __rt::Way<Actor = Counter, Env = __CounterLocalMsg>,
            (Rc<str>,): __rt::Suits<__L>,
        {
            __rt::Way::call::<_, _, __call_tag>(__rt::SameShard::itself(self.0), (tag,))
        }
    }
    pub enum __call_add {}
    impl __rt::Message<__rt::Plain<u64>, (u64,)> for __call_add {
        type Of = __CounterMsg;
        const NAME: &'static __rt::str = "add";
        #[inline]
        fn build(args: (u64,), reply: __rt::Reply<u64>) -> Self::Of {
            __CounterMsg::add(__rt::Cross::new(args.0), __rt::Cross::reply(reply))
        }
    }
    pub enum __call_take {}
    impl __rt::Message<__rt::Flat<Result<u64, String>>, (u64,)> for __call_take {
        type Of = __CounterMsg;
        const NAME: &'static __rt::str = "take";
        const ANSWERS_AT_ONCE: __rt::bool = false;
        #[inline]
        fn build(args: (u64,), reply: __rt::Reply<Result<u64, String>>) -> Self::Of {
            let reply = (reply,);
            __CounterMsg::take(__rt::Cross::new(args.0), __rt::Cross::reply(reply.0))
        }
    }
    pub enum __call_tag {}
    impl __rt::Message<__rt::Plain<usize>, (Rc<str>,)> for __call_tag {
        type Of = __CounterLocalMsg;
        const NAME: &'static __rt::str = "tag";
        const ANSWERS_AT_ONCE: __rt::bool = false;
        #[inline]
        fn build(args: (Rc<str>,), reply: __rt::Reply<usize>) -> Self::Of {
            __CounterLocalMsg::tag(args.0, reply)
        }
    }
    use __rt::{ShowDisplay as _, ShowNothing as _};
    #[automatically_derived]
    impl __rt::Actor for Counter {
        type Msg = __CounterMsg;
        type LocalMsg = __CounterLocalMsg;
        type Client<__P: __rt::Way<Actor = Self>> = __CounterClient<__P>;
        const NAME: &'static __rt::str = "Counter";
        const MAILBOX: __rt::usize = 64;
        fn carried(msg: &Self::LocalMsg) -> __rt::Carried<'_> {
            match msg {
                __CounterLocalMsg::__Shared(msg) => <Self as __rt::Actor>::shared_carried(msg),
                __CounterLocalMsg::tag(.., reply) => __rt::Carried(reply, &"tag", true),
                _ => __rt::core::unreachable!(),
            }
        }
        fn shared_carried(msg: &Self::Msg) -> __rt::Carried<'_> {
            match msg {
                __CounterMsg::add(.., reply) => __rt::Carried(reply, &"add", false),
                __CounterMsg::take(.., reply) => __rt::Carried(reply, &"take", false),
                _ => __rt::core::unreachable!(),
            }
        }
        #[inline]
        fn dispatch_now(
            &mut self,
            msg: Self::LocalMsg,
            ctx: &mut __rt::Ctx<Self>,
        ) -> __rt::Option<Self::LocalMsg> {
            match msg {
                __CounterLocalMsg::__Shared(__CounterMsg::add(a0, reply)) => {
                    __rt::answer(reply.get(), Self::add(self, a0.get()));
                }
                __CounterLocalMsg::tag(a0, reply) => {
                    Self::tag(self, a0, reply);
                }
                msg => return __rt::Some(msg),
            }
            __rt::None
        }
        async fn dispatch(&mut self, msg: Self::LocalMsg, ctx: &mut __rt::Ctx<Self>) {
            match msg {
                __CounterLocalMsg::__Shared(__CounterMsg::take(a0, reply)) => {
                    let answer = Self::take(self, a0.get(), __rt::ctx_is::<Self>(ctx)).await;
                    let show = (&&__rt::Show(&answer)).shower();
                    __rt::answer_flat(reply.get(), answer, ctx, "take", show);
                }
                msg => {
                    let _ = <Self as __rt::Actor>::dispatch_now(self, msg, ctx);
                }
            }
        }
        const HEARS_START: __rt::core::primitive::bool = true;
        async fn started(
            &mut self,
            ctx: &mut __rt::Ctx<Self>,
        ) -> __rt::Result<(), __rt::StartFailure> {
            let returned = (Self::open(self).await,);
            __rt::IntoStart::into_start(returned.0)
        }
    }
};
