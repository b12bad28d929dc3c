//! The raw system calls that the attempts are made of.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// One system call: numbers and addresses in, result out.
pub fn call(number: i64, args: &[usize]) -> Result<i64, String> {
    let arg = |n: usize| args.get(n).copied().unwrap_or(0);
    // SAFETY: callers pass addresses of live buffers with their real sizes. This is the attacker's side of a test in a
    // process of its own; nothing of the product runs in it.
    let result = unsafe { libc::syscall(number, arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)) };
    if result < 0 { Err(std::io::Error::last_os_error().to_string()) } else { Ok(result) }
}

/// [`call`] for an attempt that ends there.
pub fn calls(number: i64, args: &[usize]) -> crate::attempt::Played {
    call(number, args).map(|result| result.to_string())
}

/// A path or string as the kernel takes it.
pub fn c(text: impl AsRef<OsStr>) -> CString {
    CString::new(text.as_ref().as_bytes()).unwrap_or_default()
}

/// The address of a C string.
pub fn at(text: &CString) -> usize {
    text.as_ptr() as usize
}

/// fork(2) without the C library's handlers: `Ok(0)` in the child.
pub fn fork() -> Result<i64, String> {
    call(libc::SYS_clone, &[libc::SIGCHLD as usize])
}

/// Ends this process.
pub fn exit(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Reads the bytes at `address` of this process.
pub fn peek(address: usize, length: usize) -> Vec<u8> {
    // SAFETY: callers pass memory that they have mapped with this length.
    unsafe { std::slice::from_raw_parts(address as *const u8, length) }.to_vec()
}

/// getpid(2) through the 32-bit entry of the kernel.
#[cfg(target_arch = "x86_64")]
pub fn getpid_by_int80() -> i64 {
    let result: i32;
    // SAFETY: int 0x80 with getpid (20) touches no memory; rbx is not an operand; r8 to r11 may be clobbered.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("eax") 20i32 => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    i64::from(result)
}

/// Writes `bytes` at `address` of this process.
pub fn poke(address: usize, bytes: &[u8]) {
    // SAFETY: callers pass memory that they have mapped, at least as long as `bytes`.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) }
}
