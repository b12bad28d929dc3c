//! Requests by number: ioctl(2) and fcntl(2).
//!
//! A filter sees the number, not what the descriptor is of. In tier `full` the few that reach beyond the command are
//! refused. In tier `landlock`, where a descriptor for reading is enough for a file system's own requests to change a
//! file of the host, only those that ordinary programs use are let through.

use super::program::{Program, Test};
use super::shared::Shared;
use super::{ALLOW, ENOTTY, EPERM};

/// What puts input into a terminal or takes the console over (TIOCSTI, TIOCCONS, TIOCLINUX), and line disciplines
/// (TIOCSETD), which load modules of the kernel that no terminal inside needs.
const REFUSED: [u32; 4] = [0x5412, 0x541d, 0x541c, 0x5423];

/// FICLONE, FICLONERANGE, FIDEDUPERANGE: copies by sharing, between files that are open already.
const CLONES: [u32; 3] = [0x4004_9409, 0x4020_940d, 0xc018_9436];

/// FS_IOC_SETFLAGS, its 32-bit form, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, EXT4_IOC_SETVERSION: attributes by a
/// read-only descriptor.
const ATTRIBUTES: [u32; 5] = [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4008_7602, 0x4008_6604];

/// Requests that read: FIGETBSZ, FS_IOC_GETFLAGS and its 32-bit form, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR,
/// FS_IOC_FIEMAP, FS_IOC_GETFSLABEL, RNDGETENTCNT.
const READING: [u32; 8] =
    [2, 0x8008_6601, 0x8004_6601, 0x8008_7601, 0x801c_581f, 0xc020_660b, 0x8100_9431, 0x8004_5200];

/// FIOSETOWN, SIOCSPGRP: who gets a descriptor's signals.
const OWNERS: [u32; 2] = [0x8901, 0x8902];

/// The request for the other side of a terminal.
const TIOCGPTPEER: u32 = 0x5441;

/// The byte of a request that says which driver it is for: terminals and all descriptors, sockets, btrfs.
const DRIVER: u32 = 0xff00;
const TERMINALS: u32 = 0x5400;
const SOCKETS: u32 = 0x8900;
const BTRFS: u32 = 0x9400;

const F_SETOWN: u32 = 8;
const F_SETSIG: u32 = 10;
const F_SETOWN_EX: u32 = 15;
/// A lease makes whoever opens the file wait, the host too. F_SETDELEG is the same for directories.
const F_SETLEASE: u32 = 1024;
const F_SETDELEG: u32 = 1040;
/// Written to the inode, by a read-only descriptor.
const F_SET_RW_HINT: u32 = 1036;
const F_SET_FILE_RW_HINT: u32 = 1038;

pub fn ioctl(b: &mut Program, shared: Option<Shared>) {
    b.load_arg(1);
    for request in REFUSED {
        b.when(Test::Equal, request, EPERM);
    }
    for request in CLONES {
        b.when(Test::Equal, request, ALLOW);
    }
    let Some(shared) = shared else {
        // Subvolumes are names that are made by a request.
        b.and(DRIVER);
        b.when(Test::Equal, BTRFS, EPERM);
        b.ret(ALLOW);
        return;
    };
    for request in ATTRIBUTES {
        b.when(Test::Equal, request, EPERM);
    }
    if shared.signals_are_asked_about() {
        for request in OWNERS {
            b.when(Test::Equal, request, EPERM);
        }
    }
    for request in READING {
        b.when(Test::Equal, request, ALLOW);
    }
    b.when(Test::Equal, TIOCGPTPEER, shared.asked());
    b.and(DRIVER);
    for driver in [TERMINALS, SOCKETS] {
        b.when(Test::Equal, driver, ALLOW);
    }
    b.ret(ENOTTY);
}

pub fn fcntl(b: &mut Program, shared: Option<Shared>) {
    b.load_arg(1);
    for command in [F_SETLEASE, F_SETDELEG] {
        b.when(Test::Equal, command, EPERM);
    }
    if let Some(shared) = shared {
        for command in [F_SET_RW_HINT, F_SET_FILE_RW_HINT] {
            b.when(Test::Equal, command, EPERM);
        }
        // A signal of any number to any process of the user, where Landlock has no scope for it.
        if shared.signals_are_asked_about() {
            for command in [F_SETOWN, F_SETOWN_EX, F_SETSIG] {
                b.when(Test::Equal, command, EPERM);
            }
        }
    }
    b.ret(ALLOW);
}
