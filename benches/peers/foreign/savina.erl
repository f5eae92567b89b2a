%% Eight of the Savina benchmarks in Erlang, to compare with.
%%
%% erlc savina.erl; erl +S 1:1 -noshell -s savina main BENCHMARK ROUNDS suite|small
%%
%% Prints how many seconds each round took, one a line. A wrong result is a failed match, which ends it with an error.
%% Parameters, messages and checks are those of benches/savina.
-module(savina).
-export([main/1]).

main([Benchmark, Rounds, Size]) ->
    N = list_to_integer(atom_to_list(Rounds)),
    try
        [round(Benchmark, Size) || _ <- lists:seq(1, N)],
        halt(0)
    catch
        Class:Reason:Stack ->
            io:format(standard_error, "~p ~p~n~p~n", [Class, Reason, Stack]),
            halt(1)
    end.

%% Every round is a process of its own, whose end takes its actors with it.
round(Benchmark, Size) ->
    Me = self(),
    {Runner, Monitor} = spawn_monitor(fun() ->
        {Micros, _} = timer:tc(fun() -> run(Benchmark, Size) end),
        Me ! {self(), Micros},
        exit(shutdown)
    end),
    receive
        {Runner, Micros} ->
            erlang:demonitor(Monitor, [flush]),
            io:format("~.9f~n", [Micros / 1.0e6]);
        {'DOWN', Monitor, process, _, Reason} ->
            error(Reason)
    end.

run(counting, suite) -> counting(1000000);
run(counting, small) -> counting(2000);
run(ping_pong, suite) -> ping_pong(40000);
run(ping_pong, small) -> ping_pong(500);
run(thread_ring, suite) -> thread_ring(100, 100000);
run(thread_ring, small) -> thread_ring(10, 1000);
run(fork_join_create, suite) -> fork_join_create(40000);
run(fork_join_create, small) -> fork_join_create(200);
run(fork_join_throughput, suite) -> fork_join_throughput(60, 10000);
run(fork_join_throughput, small) -> fork_join_throughput(6, 100);
run(chameneos, suite) -> chameneos(100, 200000);
run(chameneos, small) -> chameneos(10, 500);
run(big, suite) -> big(120, 20000);
run(big, small) -> big(12, 100);
run(bank_transaction, suite) -> bank_transaction(1000, 50000);
run(bank_transaction, small) -> bank_transaction(20, 200).

%% A question, and its answer.
call(Pid, Question) ->
    Ref = make_ref(),
    Pid ! {Question, self(), Ref},
    receive {Ref, Answer} -> Answer end.

repeat(0, _) -> ok;
repeat(N, Do) -> Do(), repeat(N - 1, Do).

work() ->
    Sine = math:sin(37.2),
    Sine * Sine.

is_sum(Sum, Count) -> abs(Sum - Count * work()) < 1.0e-9 * Sum.

%% Counting.

counter(Count) ->
    receive
        increment -> counter(Count + 1);
        {count, From, Ref} -> From ! {Ref, Count}
    end.

counting(Messages) ->
    Counter = spawn_link(fun() -> counter(0) end),
    Producer = spawn_link(fun() ->
        receive
            {{produce, N}, From, Ref} ->
                repeat(N, fun() -> Counter ! increment end),
                From ! {Ref, call(Counter, count)}
        end
    end),
    Messages = call(Producer, {produce, Messages}).

%% Ping-pong.

pong(Pings) ->
    receive
        {ping, From, Ref} ->
            From ! {Ref, Pings + 1},
            pong(Pings + 1);
        stop -> ok
    end.

play(_, 0, Pongs) -> Pongs;
play(Pong, N, _) -> play(Pong, N - 1, call(Pong, ping)).

ping_pong(Pings) ->
    Pong = spawn_link(fun() -> pong(0) end),
    Ping = spawn_link(fun() ->
        receive {{play, N}, From, Ref} -> From ! {Ref, play(Pong, N, 0)} end
    end),
    Pings = call(Ping, {play, Pings}),
    Pong ! stop.

%% Thread ring.

station() ->
    receive {connect, Next} -> station(Next, none) end.

station(Next, Done) ->
    receive
        {{start, Hops}, From, Ref} ->
            Next ! {token, 1, Hops - 1},
            station(Next, {From, Ref});
        {token, Made, 0} when Done =/= none ->
            {From, Ref} = Done,
            From ! {Ref, Made},
            station(Next, none);
        {token, Made, Left} ->
            Next ! {token, Made + 1, max(Left - 1, 0)},
            station(Next, Done);
        stop -> ok
    end.

thread_ring(Stations, Hops) ->
    Ring = [spawn_link(fun station/0) || _ <- lists:seq(1, Stations)],
    [First | Others] = Ring,
    [Station ! {connect, Next} || {Station, Next} <- lists:zip(Ring, Others ++ [First])],
    Hops = call(First, {start, Hops}),
    [Station ! stop || Station <- Ring].

%% Fork-join, creating.

join(0, Sum) -> Sum;
join(Running, Sum) -> receive {join, Result} -> join(Running - 1, Sum + Result) end.

fork_join_create(Workers) ->
    Parents = erlang:system_info(schedulers_online),
    Share = Workers div Parents,
    Fork = fun() ->
        receive
            {{fork, N}, From, Ref} ->
                Me = self(),
                repeat(N, fun() ->
                    Worker = spawn(fun() -> receive {work, Parent} -> Parent ! {join, work()} end end),
                    Worker ! {work, Me}
                end),
                From ! {Ref, join(N, 0.0)}
        end
    end,
    Asked = [begin
        Ref = make_ref(),
        spawn_link(Fork) ! {{fork, Share}, self(), Ref},
        Ref
    end || _ <- lists:seq(1, Parents)],
    Sum = lists:sum([receive {Ref, Answer} -> Answer end || Ref <- Asked]),
    true = is_sum(Sum, Workers).

%% Fork-join, throughput.

worker(Handled, Sum) ->
    receive
        work -> worker(Handled + 1, Sum + work());
        {handled, From, Ref} -> From ! {Ref, Handled}
    end.

fork_join_throughput(Actors, Messages) ->
    Workers = [spawn_link(fun() -> worker(0, 0.0) end) || _ <- lists:seq(1, Actors)],
    repeat(Messages, fun() -> [Worker ! work || Worker <- Workers] end),
    [Messages = call(Worker, handled) || Worker <- Workers].

%% Chameneos.

colour_after(Mine, Mine) -> Mine;
colour_after(blue, red) -> yellow;
colour_after(red, blue) -> yellow;
colour_after(blue, yellow) -> red;
colour_after(yellow, blue) -> red;
colour_after(_, _) -> blue.

mall(0, none) ->
    receive
        {{meet, _}, From, Ref} -> From ! {Ref, none}, mall(0, none);
        stop -> ok
    end;
mall(Left, Waiting) ->
    receive
        {{meet, Colour}, From, Ref} when Waiting =:= none ->
            mall(Left, {Colour, From, Ref});
        {{meet, Colour}, From, Ref} ->
            {OtherColour, Other, OtherRef} = Waiting,
            Other ! {OtherRef, Colour},
            From ! {Ref, OtherColour},
            mall(Left - 1, none)
    end.

live(Mall, Colour, Met) ->
    case call(Mall, {meet, Colour}) of
        none -> Met;
        Other -> live(Mall, colour_after(Colour, Other), Met + 1)
    end.

chameneos(Chameneos, Meetings) ->
    Mall = spawn_link(fun() -> mall(Meetings, none) end),
    Me = self(),
    Lives = [begin
        Colour = element(Number rem 3 + 1, {yellow, blue, red}),
        spawn_link(fun() -> Me ! {self(), live(Mall, Colour, 0)} end)
    end || Number <- lists:seq(0, Chameneos - 1)],
    Met = lists:sum([receive {Life, Count} -> Count end || Life <- Lives]),
    Met = 2 * Meetings,
    Mall ! stop.

%% Big.

node_of(Number) ->
    rand:seed(exsp, Number),
    receive {know, All} -> node_of(Number, All, none, 0, 0, none) end.

node_of(Number, All, Pinged, Left, Pongs, Done) ->
    receive
        {{start, Pings}, From, Ref} -> ping_another(Number, All, Pings, Pongs, {From, Ref});
        {ping, From} ->
            element(From, All) ! {pong, Number},
            node_of(Number, All, Pinged, Left, Pongs, Done);
        {pong, From} when From =:= Pinged -> ping_another(Number, All, Left, Pongs + 1, Done);
        stop -> ok
    end.

ping_another(Number, All, 0, Pongs, {From, Ref}) ->
    From ! {Ref, Pongs},
    node_of(Number, All, none, 0, Pongs, none);
ping_another(Number, All, Left, Pongs, Done) ->
    Pinged = rand:uniform(tuple_size(All)),
    element(Pinged, All) ! {ping, Number},
    node_of(Number, All, Pinged, Left - 1, Pongs, Done).

big(Nodes, Pings) ->
    List = [spawn_link(fun() -> node_of(Number) end) || Number <- lists:seq(1, Nodes)],
    All = list_to_tuple(List),
    [Node ! {know, All} || Node <- List],
    Asked = [begin
        Ref = make_ref(),
        Node ! {{start, Pings}, self(), Ref},
        Ref
    end || Node <- List],
    Pongs = lists:sum([receive {Ref, Answer} -> Answer end || Ref <- Asked]),
    Pongs = Pings * Nodes,
    [Node ! stop || Node <- List].

%% Bank transaction.

account(Cents) ->
    receive
        {{transfer, Amount, To}, From, Ref} ->
            ok = call(To, {deposit, Amount}),
            From ! {Ref, ok},
            account(Cents - Amount);
        {{deposit, Amount}, From, Ref} ->
            From ! {Ref, ok},
            account(Cents + Amount);
        {balance, From, Ref} -> From ! {Ref, Cents}
    end.

%% At most a thousand transfers are under way at once.
transfers(_, 0, 0) -> ok;
transfers(Accounts, Left, UnderWay) when Left > 0, UnderWay < 1000 ->
    Count = tuple_size(Accounts),
    From = rand:uniform(Count div 10 * 8),
    To = From + rand:uniform(Count - From),
    element(From, Accounts) ! {{transfer, rand:uniform(1000), element(To, Accounts)}, self(), transfer},
    transfers(Accounts, Left - 1, UnderWay + 1);
transfers(Accounts, Left, UnderWay) ->
    receive {transfer, ok} -> transfers(Accounts, Left, UnderWay - 1) end.

bank_transaction(Count, Transfers) ->
    List = [spawn_link(fun() -> account(1000000) end) || _ <- lists:seq(1, Count)],
    Teller = spawn_link(fun() ->
        rand:seed(exsp, 123456),
        receive
            {{transfers, N}, From, Ref} ->
                From ! {Ref, transfers(list_to_tuple(List), N, 0)}
        end
    end),
    ok = call(Teller, {transfers, Transfers}),
    Sum = lists:sum([call(Account, balance) || Account <- List]),
    Sum = 1000000 * Count.
