//! A small assembler for filter programs.
//!
//! The rules for calls are found by halving the numbers: the kernel runs a new program once for every call number, to learn
//! which need no program, and then at every call whose arguments decide. One rule after another, that would take longer than
//! all else that starting a sandbox does there.

use super::calls::{Arch, Call};
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    sock_filter,
};
use std::collections::BTreeMap;

/// A test of the loaded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// It is the operand.
    Equal,
    /// It is the operand or more.
    AtLeast,
    /// It has one of the operand's bits.
    AnyBit,
}

/// A program under construction. Every block that [`Program::on`] adds ends in a return, so blocks are independent.
pub struct Program {
    arch: Arch,
    code: Vec<sock_filter>,
    /// Blocks by the number of the call, in the order in which they were added. The first for a call counts.
    blocks: Vec<(u32, Vec<sock_filter>)>,
}

/// Calls that are looked for before all others: the first ones that a program is given rules for.
const FIRST: usize = 2;

/// The longest jump of a test.
const JUMP_MAX: usize = 255;

impl Program {
    pub fn new(arch: Arch) -> Program {
        Program { arch, code: Vec::with_capacity(1024), blocks: Vec::new() }
    }

    /// The architecture that it is for.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The instructions. A call without a block gets `otherwise`.
    pub fn finish(mut self, otherwise: u32) -> Vec<sock_filter> {
        let blocks = std::mem::take(&mut self.blocks);
        let mut by_number = BTreeMap::new();
        for (number, block) in &blocks {
            by_number.entry(*number).or_insert(block.as_slice());
        }
        for (number, block) in blocks.iter().take(FIRST) {
            self.jump(Test::Equal, *number, 0, block.len() as u8);
            self.code.extend(block);
            by_number.remove(number);
        }
        let nothing = [instruction(BPF_RET | BPF_K, otherwise, 0, 0)];
        // From which number on which block counts.
        let mut parts: Vec<(u32, &[sock_filter])> = vec![(0, &nothing)];
        for (number, block) in by_number {
            if parts.last().is_some_and(|(from, _)| *from == number) {
                parts.pop();
            }
            parts.extend([(number, block), (number + 1, &nothing[..])]);
        }
        parts.dedup_by(|next, one| same(next.1, one.1));
        halve(&parts, &mut self.code);
        self.code
    }

    fn push(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        self.code.push(instruction(code, k, jt, jf));
    }

    /// Loads the word at `offset` of `seccomp_data`.
    pub fn load(&mut self, offset: u32) {
        self.push(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
    }

    /// The low 32 bits of argument `n` (little-endian machines only, which are all that are supported).
    pub fn load_arg(&mut self, n: u32) {
        self.load(16 + 8 * n);
    }

    pub fn and(&mut self, mask: u32) {
        self.push(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    }

    /// Skips `jt` instructions if the test holds, else `jf`.
    pub fn jump(&mut self, test: Test, k: u32, jt: u8, jf: u8) {
        let test = match test {
            Test::Equal => BPF_JEQ,
            Test::AtLeast => BPF_JGE,
            Test::AnyBit => BPF_JSET,
        };
        self.push(BPF_JMP | test | BPF_K, k, jt, jf);
    }

    pub fn ret(&mut self, action: u32) {
        self.push(BPF_RET | BPF_K, action, 0, 0);
    }

    pub fn when(&mut self, test: Test, k: u32, action: u32) {
        self.jump(test, k, 0, 1);
        self.ret(action);
    }

    /// Decides about `call` by its number alone.
    pub fn always(&mut self, call: Call, action: u32) {
        self.on(call, |b| b.ret(action));
    }

    /// A block that decides about `call`. It must return on every way, and be shorter than 256 instructions.
    pub fn on(&mut self, call: Call, block: impl FnOnce(&mut Program)) {
        let Some(number) = call.on(self.arch) else { return };
        let mut body = Program { arch: self.arch, code: Vec::new(), blocks: Vec::new() };
        block(&mut body);
        debug_assert!(body.code.len() <= JUMP_MAX && body.blocks.is_empty());
        self.blocks.push((number, body.code));
    }
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

fn same(a: &[sock_filter], b: &[sock_filter]) -> bool {
    let plain = |i: &sock_filter| (i.code, i.jt, i.jf, i.k);
    a.iter().map(plain).eq(b.iter().map(plain))
}

/// Finds the part that the loaded number is in.
fn halve(parts: &[(u32, &[sock_filter])], code: &mut Vec<sock_filter>) {
    let (below, above) = parts.split_at(parts.len() / 2);
    let (Some((from, _)), false) = (above.first(), below.is_empty()) else {
        return code.extend(parts.iter().flat_map(|(_, block)| *block));
    };
    let mut lower = Vec::new();
    halve(below, &mut lower);
    match u8::try_from(lower.len()) {
        Ok(length) => code.push(instruction(BPF_JMP | BPF_JGE | BPF_K, *from, length, 0)),
        Err(_) => {
            code.push(instruction(BPF_JMP | BPF_JGE | BPF_K, *from, 0, 1));
            code.push(instruction(BPF_JMP | BPF_JA, lower.len() as u32, 0, 0));
        }
    }
    code.extend(lower);
    halve(above, code);
}

/// Runs `program` as the kernel would, for one call. A program that is none kills.
pub fn verdict(program: &[sock_filter], arch: u32, nr: u32, args: [u64; 6]) -> u32 {
    let mut data = [0u8; 64];
    data[0..4].copy_from_slice(&nr.to_le_bytes());
    data[4..8].copy_from_slice(&arch.to_le_bytes());
    for (place, arg) in data[16..].chunks_exact_mut(8).zip(args) {
        place.copy_from_slice(&arg.to_le_bytes());
    }
    let (mut pc, mut a) = (0usize, 0u32);
    while let Some(i) = program.get(pc) {
        pc += 1;
        let code = u32::from(i.code);
        if code == BPF_LD | BPF_W | BPF_ABS {
            let at = i.k as usize;
            let Some(word) = data.get(at..at + 4).and_then(|w| w.try_into().ok()) else { break };
            a = u32::from_le_bytes(word);
        } else if code == BPF_ALU | BPF_AND | BPF_K {
            a &= i.k;
        } else if code == BPF_RET | BPF_K {
            return i.k;
        } else if code == BPF_JMP | BPF_JA {
            pc = pc.saturating_add(i.k as usize);
        } else {
            let taken = match code & 0xf0 {
                BPF_JEQ => a == i.k,
                BPF_JGE => a >= i.k,
                BPF_JSET => a & i.k != 0,
                _ => break,
            };
            pc += usize::from(if taken { i.jt } else { i.jf });
        }
    }
    libc::SECCOMP_RET_KILL_PROCESS
}
