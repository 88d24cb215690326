//! One exported function that uses the no-alloc tier and counts what came out wrong.
//!
//! Only a call that is really made is linked, and only what is linked is proven: whoever adds
//! something to the no-alloc tier calls it here.

use core::{
    fmt::{self, Write},
    hint::black_box,
    panic::PanicInfo,
};

use gangline::{
    bits::CardSet,
    device::{
        mig::MigState,
        model, names,
        overhead::{Inside, Overhead, OverheadTable},
    },
    gang::{
        life::{Census, Command, End, Event, Life, Phase, Rules, step},
        policy::{LossMode, TimeoutPolicy},
    },
    units::{Bytes, Mib, MilliCpu, Nanos, Uid},
};

/// What the program exits with when everything held. Not 0, so that a program that never got here
/// cannot pass.
const PASSED: i32 = 42;

/// Called by `start.c`; its result is the exit code: [`PASSED`], or the number of the first check
/// that failed.
#[unsafe(no_mangle)]
extern "C" fn gangline_proof() -> i32 {
    let checks: [fn() -> bool; 5] = [units, identities, cards, tables, life];
    for (number, check) in (1..).zip(checks) {
        if !check() {
            return number;
        }
    }
    PASSED
}

/// Without an unwinder nothing can be done but stop; the exit code of the trap differs from
/// [`PASSED`].
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

fn units() -> bool {
    let largest = black_box(MilliCpu::MAX);
    largest.checked_add(MilliCpu(1)).is_none()
        && largest.saturating_add(MilliCpu(1)) == largest
        && black_box(Mib(3)).to_bytes() == Some(Bytes(3 << 20))
        && shows(black_box(Nanos::from_secs(90)), "1m30s")
}

fn identities() -> bool {
    let text = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    shows(Uid::from_text(black_box(text)), text)
}

fn cards() -> bool {
    let Some(all) = CardSet::first(black_box(8)) else {
        return false;
    };
    let Some(low) = all.lowest(3) else {
        return false;
    };
    let rest = all.difference(low);
    rest.iter().sum::<u32>() == 3 + 4 + 5 + 6 + 7
        && all.contains_all(rest)
        && low.intersection(rest).is_empty()
        && shows(low.union(CardSet(1 << 7)), "0-2,7")
}

/// A product string and a resource name lead to a place on the card, and back.
fn tables() -> bool {
    let Some(mig) = model::find(black_box("NVIDIA-H100-80GB-HBM3-SHARED")).and_then(|m| m.mig)
    else {
        return false;
    };
    let meaning = names::meaning(black_box("nvidia.com/mig-1g.10gb.me"));
    let Some(names::ResourceMeaning::Slice(slice)) = meaning else {
        return false;
    };
    let Some(ix) = slice.profile(mig) else {
        return false;
    };
    let start = mig.best_start(MigState::EMPTY, ix);
    let put = start.and_then(|start| mig.put(MigState::EMPTY, ix, start));
    let back = put.and_then(|state| mig.take_out(state, ix, 6));
    let need = OverheadTable::DEFAULT.need_mib(100, Overhead::PROCESS, Inside::MigInstance, None);
    start == Some(6)
        && put.is_some_and(|state| mig.flexibility(state) == 24 && mig.most(state, ix) == 0)
        && back == Some(MigState::EMPTY)
        && need.total == 356
        && shows(slice, "1g.10gb+me")
}

/// A gang of two gathers, is planned, bound and confirmed, and ends well.
fn life() -> bool {
    let rules = Rules {
        schedule_timeout: Some(Nanos::from_secs(60)),
        on_timeout: TimeoutPolicy::Requeue,
        on_loss: LossMode::Strict,
        degraded_deadline: Nanos::from_secs(30),
    };
    let waiting = Census {
        is_ready: true,
        is_ready_anew: true,
        has_waiting: true,
        ..Census::default()
    };
    let held = Census {
        is_covered: true,
        has_held: true,
        has_waiting: false,
        ..waiting
    };
    let bound = Census {
        is_ready_anew: false,
        is_satisfied: true,
        has_held: false,
        has_bound: true,
        ..held
    };
    let over = Census {
        is_finished: true,
        has_bound: false,
        ..bound
    };
    let story = [
        (
            waiting,
            Event::Changed,
            Phase::Queued,
            Some(Command::Enqueue),
        ),
        (
            waiting,
            Event::Elapsed(Nanos::from_secs(59)),
            Phase::Queued,
            None,
        ),
        (
            waiting,
            Event::PlanFound,
            Phase::Planned,
            Some(Command::Hold),
        ),
        (held, Event::BindStarted, Phase::Binding, None),
        (bound, Event::Changed, Phase::Running, None),
        (over, Event::Changed, Phase::Ended(End::Completed), None),
    ];
    let mut life = Life::default();
    for (census, event, phase, command) in black_box(story) {
        let (next, commands) = step(life, &rules, census, event);
        if next.phase() != phase || command.is_some_and(|command| !commands.contains(command)) {
            return false;
        }
        life = next;
    }
    life.expires_in().is_none()
}

/// Whether `value` reads as `expected`, compared piece by piece: there is no buffer to write to.
fn shows(value: impl fmt::Display, expected: &str) -> bool {
    struct Rest<'a>(&'a str);
    impl Write for Rest<'_> {
        fn write_str(&mut self, piece: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(piece).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut rest = Rest(expected);
    write!(rest, "{value}").is_ok() && rest.0.is_empty()
}
