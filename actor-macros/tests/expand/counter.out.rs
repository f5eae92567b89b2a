#[allow(
    clippy::large_types_passed_by_value,
    clippy::future_not_send,
    clippy::unused_async,
    clippy::missing_const_for_fn,
    clippy::must_use_candidate,
    clippy::needless_pass_by_ref_mut,
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
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
    non_snake_case,
    unreachable_code,
    clippy::all,
    clippy::pedantic,
    clippy::future_not_send
)]
const _: () = {
    use __rt::short::{
        __Call, __Flat, __Message, __Name, __Plain, __Reply, __Suits, __answer, __carried,
    };
    use ::greenroom::__rt;
    pub enum __CounterMsg {
        add(u64, __Reply<u64>),
        take(u64, __Reply<Result<u64, String>>),
    }
    pub enum __CounterLocalMsg {
        __Shared(__CounterMsg),
        tag(__rt::Near<Rc<str>>, __Reply<usize>),
    }
    #[automatically_derived]
    impl __rt::From<__CounterMsg> for __CounterLocalMsg {
        #[inline]
        fn from(msg: __CounterMsg) -> Self {
            Self::__Shared(msg)
        }
    }
    #[automatically_derived]
    impl __rt::Carries for __CounterMsg {
        fn carried(&self) -> __rt::Carried<'_> {
            match self {
                Self::add(.., reply) => __carried(reply, &"add"),
                Self::take(.., reply) => __carried(reply, &"take"),
            }
        }
    }
    #[automatically_derived]
    impl __rt::Carries for __CounterLocalMsg {
        fn carried(&self) -> __rt::Carried<'_> {
            match self {
                Self::__Shared(msg) => __rt::Carries::carried(msg),
                Self::tag(.., reply) => __rt::carried_deferred(reply, &"tag"),
            }
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
        pub fn add(&self, by: u64) -> __Call<__P, __Plain<u64>, (u64,), __m_add>
        where
            (u64,): __Suits<__P>,
        {
            __rt::Way::call::<_, _, __m_add>(self.0, (by,))
        }
        pub fn take(&self, by: u64) -> __Call<__P, __Flat<Result<u64, String>>, (u64,), __m_take>
        where
            (u64,): __Suits<__P>,
        {
            __rt::Way::call::<_, _, __m_take>(self.0, (by,))
        }
        pub fn tag<__L>(&self, tag: Rc<str>) -> __Call<__L, __Plain<usize>, (Rc<str>,), __m_tag>
        where
            __P: __rt::SameShard<__L>,
            __L: __rt::Way<Actor = Counter, Env = __CounterLocalMsg>,
            (Rc<str>,): __Suits<__L>,
        {
            __rt::Way::call::<_, _, __m_tag>(__rt::SameShard::itself(self.0), (tag,))
        }
    }
    pub enum __m_add {}
    impl __Message<__Plain<u64>, (u64,)> for __m_add {
        type Of = __CounterMsg;
        const NAME: __Name = "add";
        #[inline]
        fn build(args: (u64,), reply: __Reply<u64>) -> Self::Of {
            __CounterMsg::add(args.0, reply)
        }
    }
    pub enum __m_take {}
    impl __Message<__Flat<Result<u64, String>>, (u64,)> for __m_take {
        type Of = __CounterMsg;
        const NAME: __Name = "take";
        const ANSWERS_AT_ONCE: __rt::bool = false;
        #[inline]
        fn build(args: (u64,), reply: __Reply<Result<u64, String>>) -> Self::Of {
            __CounterMsg::take(args.0, reply)
        }
    }
    pub enum __m_tag {}
    impl __Message<__Plain<usize>, (Rc<str>,)> for __m_tag {
        type Of = __CounterLocalMsg;
        const NAME: __Name = "tag";
        const ANSWERS_AT_ONCE: __rt::bool = false;
        #[inline]
        fn build(args: (Rc<str>,), reply: __Reply<usize>) -> Self::Of {
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
        #[inline]
        fn dispatch_now(
            &mut self,
            msg: Self::LocalMsg,
            ctx: &mut __rt::Ctx<Self>,
        ) -> __rt::Option<Self::LocalMsg> {
            match msg {
                __CounterLocalMsg::__Shared(__CounterMsg::add(a0, reply)) => {
                    __answer(reply, Self::add(self, a0))
                }
                __CounterLocalMsg::tag(a0, reply) => {
                    Self::tag(self, a0, reply);
                }
                msg => return __rt::Some(msg),
            }
            __rt::None
        }
        fn dispatch(
            &mut self,
            msg: Self::LocalMsg,
            ctx: &mut __rt::Ctx<Self>,
        ) -> impl __rt::Future<Output = ()> {
            match msg {
                __CounterLocalMsg::__Shared(__CounterMsg::take(a0, reply)) => {
                    let actor = __rt::resident(ctx);
                    let handler = Self::take(self, a0, __rt::ctx_is::<Self>(ctx));
                    let show = (&&__rt::Show::of_future(&handler)).shower();
                    let handler = (handler,);
                    __rt::answering_flat(show, reply, handler.0, actor, "take")
                }
                _ => __rt::unexpected(),
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
