//! A small assembler for filter programs.

use super::calls::{Arch, Call};
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    sock_filter,
};

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
}

impl Program {
    pub fn new(arch: Arch) -> Program {
        Program { arch, code: Vec::with_capacity(512) }
    }

    /// The architecture that it is for.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The instructions.
    pub fn finish(self) -> Vec<sock_filter> {
        self.code
    }

    fn push(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        self.code.push(sock_filter { code: code as u16, jt, jf, k });
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
        if let Some(number) = call.on(self.arch) {
            self.when(Test::Equal, number, action);
        }
    }

    /// A block that decides about `call`. It must return on every way, and be shorter than 256 instructions.
    pub fn on(&mut self, call: Call, block: impl FnOnce(&mut Program)) {
        let Some(number) = call.on(self.arch) else { return };
        let mut body = Program { arch: self.arch, code: Vec::new() };
        block(&mut body);
        debug_assert!(body.code.len() < 256);
        self.jump(Test::Equal, number, 0, body.code.len() as u8);
        self.code.extend(body.code);
    }
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
