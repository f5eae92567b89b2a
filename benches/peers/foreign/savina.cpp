// Eight of the Savina benchmarks on the C++ Actor Framework 0.17, to compare with.
//
// g++ -O3 -std=c++17 savina.cpp -lcaf_core; savina BENCHMARK CORES ROUNDS suite|small
//
// Prints how many seconds each round took, one a line. A wrong result ends it with an error. Parameters, messages and
// checks are those of benches/savina. Each round has a system of its own, with a worker thread for each core.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caf/all.hpp"

using namespace caf;
using clk = std::chrono::steady_clock;

#define ATOM(name) \
  using name##_atom = atom_constant<atom(#name)>; \
  static constexpr name##_atom name##_v = name##_atom::value;
ATOM(increment)
ATOM(count)
ATOM(produce)
ATOM(ping)
ATOM(pong)
ATOM(play)
ATOM(connect)
ATOM(start)
ATOM(token)
ATOM(work)
ATOM(fork)
ATOM(joined)
ATOM(handled)
ATOM(meet)
ATOM(live)
ATOM(transfer)
ATOM(deposit)
ATOM(balance)
ATOM(teller)

static void require(bool right, const char* what) {
  if (!right) {
    std::fprintf(stderr, "wrong result: %s\n", what);
    std::exit(1);
  }
}

static double piece_of_work() {
  volatile double angle = 37.2;
  double sine = std::sin(angle);
  return sine * sine;
}

class generator {
public:
  explicit generator(uint64_t seed) : state_(seed) {}
  size_t below(size_t limit) {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    mixed ^= mixed >> 31;
    return static_cast<size_t>((static_cast<unsigned __int128>(mixed) * limit) >> 64);
  }

private:
  uint64_t state_;
};

// A question of the main thread, and its answer.
template <class Result, class... Parts>
Result ask(scoped_actor& self, const actor& whom, Parts&&... parts) {
  Result result{};
  self->request(whom, infinite, std::forward<Parts>(parts)...)
    .receive([&](Result answer) { result = answer; },
             [&](error&) { require(false, "an answer that did not come"); });
  return result;
}

// Asks all of them at once, and adds up what they answer.
template <class Result, class Question>
Result ask_all(scoped_actor& self, const std::vector<actor>& all, Question question) {
  for (auto& one : all)
    question(one);
  Result sum{};
  size_t left = all.size();
  while (left-- > 0)
    self->receive([&](Result answer) { sum += answer; });
  return sum;
}

// Counting.

struct counter_state {
  uint64_t count = 0;
};
behavior counter(stateful_actor<counter_state>* self) {
  return {[=](increment_atom) { ++self->state.count; },
          [=](count_atom) -> uint64_t { return self->state.count; }};
}
behavior producer(event_based_actor* self, actor counter) {
  return {[=](produce_atom, uint64_t messages) {
    for (uint64_t sent = 0; sent < messages; ++sent)
      self->send(counter, increment_v);
    return self->delegate(counter, count_v);
  }};
}
void counting(actor_system& system, size_t, uint64_t messages) {
  scoped_actor self{system};
  auto from = system.spawn(producer, system.spawn(counter));
  require(ask<uint64_t>(self, from, produce_v, messages) == messages, "the count");
}

// Ping-pong.

behavior pong_actor(stateful_actor<counter_state>* self) {
  return {[=](ping_atom) -> uint64_t { return ++self->state.count; }};
}
struct ping_state {
  uint64_t left = 0;
  response_promise done;
};
void ping_once(stateful_actor<ping_state>* self, actor pong) {
  self->request(pong, infinite, ping_v).then([=](uint64_t pongs) {
    if (--self->state.left == 0)
      self->state.done.deliver(pongs);
    else
      ping_once(self, pong);
  });
}
behavior ping_actor(stateful_actor<ping_state>* self, actor pong) {
  return {[=](play_atom, uint64_t pings) {
    self->state.left = pings;
    self->state.done = self->make_response_promise();
    ping_once(self, pong);
    return self->state.done;
  }};
}
void ping_pong(actor_system& system, size_t, uint64_t pings) {
  scoped_actor self{system};
  auto one = system.spawn(ping_actor, system.spawn(pong_actor));
  require(ask<uint64_t>(self, one, play_v, pings) == pings, "the number of pongs");
}

// Thread ring.

struct station_state {
  actor next;
  bool is_first = false;
  response_promise done;
};
behavior station(stateful_actor<station_state>* self) {
  return {[=](connect_atom, actor next) { self->state.next = next; },
          [=](start_atom, uint64_t hops) {
            self->state.is_first = true;
            self->state.done = self->make_response_promise();
            self->send(self->state.next, token_v, uint64_t{1}, hops - 1);
            return self->state.done;
          },
          [=](token_atom, uint64_t made, uint64_t left) {
            if (left == 0 && self->state.is_first)
              self->state.done.deliver(made);
            else
              self->send(self->state.next, token_v, made + 1, left == 0 ? left : left - 1);
          }};
}
void thread_ring(actor_system& system, size_t stations, uint64_t hops) {
  scoped_actor self{system};
  std::vector<actor> ring;
  for (size_t number = 0; number < stations; ++number)
    ring.push_back(system.spawn(station));
  for (size_t number = 0; number < stations; ++number)
    self->send(ring[number], connect_v, ring[(number + 1) % stations]);
  require(ask<uint64_t>(self, ring[0], start_v, hops) == hops, "the number of hops");
  for (auto& one : ring)
    self->send(one, connect_v, actor{});
}

// Fork-join, creating.

behavior child(event_based_actor* self) {
  return {[=](work_atom, const actor& parent) {
    self->send(parent, joined_v, piece_of_work());
    self->quit();
  }};
}
struct parent_state {
  uint64_t running = 0;
  double sum = 0;
  response_promise done;
};
behavior parent(stateful_actor<parent_state>* self) {
  return {[=](fork_atom, uint64_t workers) {
            self->state.running = workers;
            self->state.done = self->make_response_promise();
            for (uint64_t started = 0; started < workers; ++started)
              self->send(self->spawn(child), work_v, actor_cast<actor>(self));
            return self->state.done;
          },
          [=](joined_atom, double result) {
            self->state.sum += result;
            if (--self->state.running == 0)
              self->state.done.deliver(self->state.sum);
          }};
}
void fork_join_create(actor_system& system, size_t parents, uint64_t workers) {
  scoped_actor self{system};
  std::vector<actor> all;
  for (size_t number = 0; number < parents; ++number)
    all.push_back(system.spawn(parent));
  auto sum = ask_all<double>(self, all, [&](const actor& one) {
    self->send(one, fork_v, workers / parents);
  });
  require(std::abs(sum - workers * piece_of_work()) < 1e-9 * sum, "the sum of the results");
}

// Fork-join, throughput.

struct worker_state {
  uint64_t handled = 0;
  double sum = 0;
};
behavior worker(stateful_actor<worker_state>* self) {
  return {[=](work_atom) {
            ++self->state.handled;
            self->state.sum += piece_of_work();
          },
          [=](handled_atom) -> uint64_t { return self->state.handled; }};
}
void fork_join_throughput(actor_system& system, size_t actors, uint64_t messages) {
  scoped_actor self{system};
  std::vector<actor> workers;
  for (size_t number = 0; number < actors; ++number)
    workers.push_back(system.spawn(worker));
  for (uint64_t sent = 0; sent < messages; ++sent)
    for (auto& one : workers)
      self->send(one, work_v);
  for (auto& one : workers)
    require(ask<uint64_t>(self, one, handled_v) == messages, "what a worker handled");
}

// Chameneos. The colours are 0, 1 and 2; a negative one says that the mall has closed.

struct mall_state {
  uint64_t meetings_left = 0;
  int waiting_colour = -1;
  response_promise waiting;
};
behavior mall(stateful_actor<mall_state>* self, uint64_t meetings) {
  self->state.meetings_left = meetings;
  return {[=](meet_atom, int colour) {
    auto& state = self->state;
    auto promise = self->make_response_promise();
    if (state.meetings_left == 0) {
      promise.deliver(-1);
    } else if (state.waiting_colour < 0) {
      state.waiting_colour = colour;
      state.waiting = promise;
    } else {
      --state.meetings_left;
      state.waiting.deliver(colour);
      promise.deliver(state.waiting_colour);
      state.waiting_colour = -1;
    }
    return promise;
  }};
}
struct chameneo_state {
  int colour = 0;
  uint64_t met = 0;
  response_promise done;
};
void meet_another(stateful_actor<chameneo_state>* self, actor mall) {
  self->request(mall, infinite, meet_v, self->state.colour).then([=](int other) {
    auto& state = self->state;
    if (other < 0) {
      state.done.deliver(state.met);
      return;
    }
    if (other != state.colour)
      state.colour = 3 - state.colour - other;
    ++state.met;
    meet_another(self, mall);
  });
}
behavior chameneo(stateful_actor<chameneo_state>* self, int colour, actor mall) {
  self->state.colour = colour;
  return {[=](live_atom) {
    self->state.done = self->make_response_promise();
    meet_another(self, mall);
    return self->state.done;
  }};
}
void chameneos(actor_system& system, size_t count, uint64_t meetings) {
  scoped_actor self{system};
  auto place = system.spawn(mall, meetings);
  std::vector<actor> all;
  for (size_t number = 0; number < count; ++number)
    all.push_back(system.spawn(chameneo, static_cast<int>(number % 3), place));
  auto met = ask_all<uint64_t>(self, all, [&](const actor& one) { self->send(one, live_v); });
  require(met == 2 * meetings, "how often somebody met another");
}

// Big.

struct node_state {
  std::shared_ptr<std::vector<actor>> all;
  generator random{0};
  size_t pinged = 0;
  uint64_t pings_left = 0;
  uint64_t pongs = 0;
  response_promise done;
};
void ping_another(stateful_actor<node_state>* self, uint64_t number) {
  auto& state = self->state;
  if (state.pings_left == 0) {
    state.done.deliver(state.pongs);
    return;
  }
  --state.pings_left;
  state.pinged = state.random.below(state.all->size());
  self->send((*state.all)[state.pinged], ping_v, number);
}
behavior node(stateful_actor<node_state>* self, uint64_t number,
              std::shared_ptr<std::vector<actor>> all) {
  self->state.all = all;
  self->state.random = generator{number};
  return {[=](start_atom, uint64_t pings) {
            self->state.pings_left = pings;
            self->state.done = self->make_response_promise();
            ping_another(self, number);
            return self->state.done;
          },
          [=](ping_atom, uint64_t from) { self->send((*self->state.all)[from], pong_v, number); },
          [=](pong_atom, uint64_t from) {
            require(from == self->state.pinged, "who answered");
            ++self->state.pongs;
            ping_another(self, number);
          }};
}
void big(actor_system& system, size_t nodes, uint64_t pings) {
  scoped_actor self{system};
  auto all = std::make_shared<std::vector<actor>>();
  for (size_t number = 0; number < nodes; ++number)
    all->push_back(system.spawn(node, uint64_t{number}, all));
  auto pongs = ask_all<uint64_t>(self, *all, [&](const actor& one) {
    self->send(one, start_v, pings);
  });
  require(pongs == pings * nodes, "the number of pongs");
  // They know each other: without this none would ever end.
  for (auto& one : *all)
    self->send_exit(one, exit_reason::user_shutdown);
  self->wait_for(*all);
  all->clear();
}

// Bank transaction. While an account awaits another it handles nothing else.

struct account_state {
  int64_t cents = 1000000;
};
behavior account(stateful_actor<account_state>* self) {
  return {[=](transfer_atom, int64_t cents, const actor& to) {
            self->state.cents -= cents;
            auto done = self->make_response_promise();
            self->request(to, infinite, deposit_v, cents).await([=](bool) mutable {
              done.deliver(true);
            });
            return done;
          },
          [=](deposit_atom, int64_t cents) -> bool {
            self->state.cents += cents;
            return true;
          },
          [=](balance_atom) -> int64_t { return self->state.cents; }};
}
struct teller_state {
  generator random{123456};
  size_t left = 0;
  size_t under_way = 0;
  response_promise done;
};
using accounts = std::shared_ptr<std::vector<actor>>;
void transfer_once(stateful_actor<teller_state>* self, accounts all) {
  auto& state = self->state;
  if (state.left == 0) {
    if (state.under_way == 0)
      state.done.deliver(true);
    return;
  }
  --state.left;
  ++state.under_way;
  auto from = state.random.below(all->size() / 10 * 8);
  auto to = from + 1 + state.random.below(all->size() - from - 1);
  auto cents = static_cast<int64_t>(1 + state.random.below(1000));
  self->request((*all)[from], infinite, transfer_v, cents, (*all)[to]).then([=](bool) {
    --self->state.under_way;
    transfer_once(self, all);
  });
}
behavior teller(stateful_actor<teller_state>* self, accounts all) {
  return {[=](teller_atom, uint64_t transfers) {
    self->state.left = transfers;
    self->state.done = self->make_response_promise();
    for (size_t begun = 0; begun < 1000 && self->state.left > 0; ++begun)
      transfer_once(self, all);
    return self->state.done;
  }};
}
void bank_transaction(actor_system& system, size_t count, uint64_t transfers) {
  scoped_actor self{system};
  auto all = std::make_shared<std::vector<actor>>();
  for (size_t number = 0; number < count; ++number)
    all->push_back(system.spawn(account));
  require(ask<bool>(self, system.spawn(teller, all), teller_v, transfers), "the transfers");
  int64_t sum = 0;
  for (auto& one : *all)
    sum += ask<int64_t>(self, one, balance_v);
  require(sum == static_cast<int64_t>(1000000 * count), "the money in the bank");
}

struct benchmark {
  void (*run)(actor_system&, size_t, uint64_t);
  // Actors and messages, in the suite and small.
  size_t actors;
  uint64_t messages;
  size_t few_actors;
  uint64_t few_messages;
};

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: savina BENCHMARK CORES ROUNDS suite|small\n");
    return 2;
  }
  const std::string name = argv[1];
  const size_t cores = std::stoul(argv[2]);
  const int rounds = std::stoi(argv[3]);
  const bool is_small = std::string(argv[4]) == "small";
  const std::map<std::string, benchmark> benchmarks = {
    {"counting", {counting, 2, 1000000, 2, 2000}},
    {"ping_pong", {ping_pong, 2, 40000, 2, 500}},
    {"thread_ring", {thread_ring, 100, 100000, 10, 1000}},
    {"fork_join_create", {fork_join_create, cores, 40000, cores, 200}},
    {"fork_join_throughput", {fork_join_throughput, 60, 10000, 6, 100}},
    {"chameneos", {chameneos, 100, 200000, 10, 500}},
    {"big", {big, 120, 20000, 12, 100}},
    {"bank_transaction", {bank_transaction, 1000, 50000, 20, 200}},
  };
  const auto& wanted = benchmarks.at(name);
  for (int round = 0; round < rounds; ++round) {
    actor_system_config config;
    config.set("scheduler.max-threads", cores);
    actor_system system{config};
    const auto begun = clk::now();
    wanted.run(system, is_small ? wanted.few_actors : wanted.actors,
               is_small ? wanted.few_messages : wanted.messages);
    const std::chrono::duration<double> elapsed = clk::now() - begun;
    std::printf("%.9f\n", elapsed.count());
    std::fflush(stdout);
  }
  // What is still alive knows nothing that anyone waits for.
  std::_Exit(0);
}
