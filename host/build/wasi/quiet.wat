;; A stand-in for WASI's preview 1, for the C library and for Go's runtime: a computer on which nothing happens.
;; `plugin build` puts it beside modules that import preview 1, and what they do not use is left out, so their components
;; import nothing but the contract.
;;
;; It allocates nothing and never calls back into the module: it may be called while an allocator runs, in the middle of
;; a panic, or while the module grows its memory.
;;
;; Written out below by hand is what has an effect; at the end stands what is refused.
(module
  (import "env" "memory" (memory 0))
  (import "opilio:plugin/log@0.2.0" "write" (func $log (param $level i32) (param $text i32) (param $length i32)))

  ;; Nanoseconds since 1970 at which every clock begins: 2000-01-01T00:00:00Z.
  (global $wall i64 (i64.const 946684800000000000))
  ;; What has passed on the monotonic clock. A call starts from the memory and globals of `configure`, so it is the
  ;; same in every call.
  (global $passed (mut i64) (i64.const 0))
  ;; State of the generator of numbers (splitmix64).
  (global $state (mut i64) (i64.const 0))

  ;; No arguments and no variables: count and length are nought.
  (func $none (param $count i32) (param $bytes i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $bytes) (i32.const 0))
    (i32.const 0))
  (export "args_sizes_get" (func $none))
  (export "environ_sizes_get" (func $none))

  (func (export "clock_res_get") (param $clock i32) (param $out i32) (result i32)
    (i64.store (local.get $out) (i64.const 1000))
    (i32.const 0))

  ;; The wall clock (0) stands still; any other moves by a microsecond when it is looked at, so that nobody waits for ever.
  (func (export "clock_time_get") (param $clock i32) (param $precision i64) (param $out i32) (result i32)
    (if (local.get $clock)
      (then
        (global.set $passed (i64.add (global.get $passed) (i64.const 1000)))
        (i64.store (local.get $out) (global.get $passed)))
      (else (i64.store (local.get $out) (global.get $wall))))
    (i32.const 0))

  (func (export "random_get") (param $out i32) (param $length i32) (result i32)
    (local $z i64) (local $n i32)
    (block $done
      (loop $next
        (br_if $done (i32.eq (local.get $n) (local.get $length)))
        (global.set $state (i64.add (global.get $state) (i64.const 0x9E3779B97F4A7C15)))
        (local.set $z (global.get $state))
        (local.set $z (i64.mul (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 30))) (i64.const 0xBF58476D1CE4E5B9)))
        (local.set $z (i64.mul (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 27))) (i64.const 0x94D049BB133111EB)))
        (i64.store8 (i32.add (local.get $out) (local.get $n)) (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 31))))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br $next)))
    (i32.const 0))

  ;; Input is at its end.
  (func (export "fd_read") (param $fd i32) (param $vectors i32) (param $count i32) (param $out i32) (result i32)
    (if (local.get $fd) (then (return (i32.const 8))))
    (i32.store (local.get $out) (i32.const 0))
    (i32.const 0))

  ;; Output (1) is information in the log, errors (2) are warnings; each piece a line, without the line feeds at its end.
  (func (export "fd_write") (param $fd i32) (param $vectors i32) (param $count i32) (param $out i32) (result i32)
    (local $at i32) (local $length i32) (local $total i32)
    (if (i32.gt_u (i32.sub (local.get $fd) (i32.const 1)) (i32.const 1)) (then (return (i32.const 8))))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $at (i32.load (local.get $vectors)))
        (local.set $length (i32.load offset=4 (local.get $vectors)))
        (local.set $total (i32.add (local.get $total) (local.get $length)))
        (local.set $vectors (i32.add (local.get $vectors) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (block $trimmed
          (loop $trim
            (br_if $trimmed (i32.eqz (local.get $length)))
            (br_if $trimmed (i32.ne (i32.load8_u (i32.sub (i32.add (local.get $at) (local.get $length)) (i32.const 1))) (i32.const 10)))
            (local.set $length (i32.sub (local.get $length) (i32.const 1)))
            (br $trim)))
        (if (local.get $length)
          (then (call $log (local.get $fd) (local.get $at) (local.get $length))))
        (br $next)))
    (i32.store (local.get $out) (local.get $total))
    (i32.const 0))

  ;; The three streams are terminals with every right; nothing else is open.
  (func (export "fd_fdstat_get") (param $fd i32) (param $out i32) (result i32)
    (if (i32.gt_u (local.get $fd) (i32.const 2)) (then (return (i32.const 8))))
    (i64.store (local.get $out) (i64.const 2))
    (i64.store offset=8 (local.get $out) (i64.const -1))
    (i64.store offset=16 (local.get $out) (i64.const -1))
    (i32.const 0))

  ;; Waiting takes no time: every subscription has happened, and clocks have moved to where it wanted them.
  (func (export "poll_oneoff") (param $in i32) (param $out i32) (param $count i32) (param $events i32) (result i32)
    (local $n i32) (local $until i64)
    (block $done
      (loop $next
        (br_if $done (i32.eq (local.get $n) (local.get $count)))
        (if (i32.eqz (i32.load8_u offset=8 (local.get $in)))
          (then
            (local.set $until (i64.load offset=24 (local.get $in)))
            (if (i32.eqz (i32.and (i32.load16_u offset=40 (local.get $in)) (i32.const 1)))
              (then (local.set $until (i64.add (local.get $until) (global.get $passed)))))
            (if (i64.gt_u (local.get $until) (global.get $passed))
              (then (global.set $passed (local.get $until))))))
        (i64.store (local.get $out) (i64.load (local.get $in)))
        (i64.store offset=8 (local.get $out) (i64.const 0))
        (i32.store8 offset=10 (local.get $out) (i32.load8_u offset=8 (local.get $in)))
        (i64.store offset=16 (local.get $out) (i64.const 0))
        (i64.store offset=24 (local.get $out) (i64.const 0))
        (local.set $in (i32.add (local.get $in) (i32.const 48)))
        (local.set $out (i32.add (local.get $out) (i32.const 32)))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br $next)))
    (i32.store (local.get $events) (local.get $count))
    (i32.const 0))

  ;; The end of the program is the end of the instance.
  (func (export "proc_exit") (param $code i32) unreachable)

  ;; Done by doing nothing (0), or refused: no such descriptor (8), no such call (52), not seekable (70), no right to it (76).
  (func (export "args_get") (param i32 i32) (result i32) (i32.const 0))
  (func (export "environ_get") (param i32 i32) (result i32) (i32.const 0))
  (func (export "fd_advise") (param i32 i64 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_allocate") (param i32 i64 i64) (result i32) (i32.const 8))
  (func (export "fd_close") (param i32) (result i32) (i32.const 0))
  (func (export "fd_datasync") (param i32) (result i32) (i32.const 8))
  (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) (i32.const 0))
  (func (export "fd_fdstat_set_rights") (param i32 i64 i64) (result i32) (i32.const 8))
  (func (export "fd_filestat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_filestat_set_size") (param i32 i64) (result i32) (i32.const 8))
  (func (export "fd_filestat_set_times") (param i32 i64 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_pread") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_prestat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "fd_pwrite") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_readdir") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_renumber") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) (i32.const 70))
  (func (export "fd_sync") (param i32) (result i32) (i32.const 8))
  (func (export "fd_tell") (param i32 i32) (result i32) (i32.const 70))
  (func (export "path_create_directory") (param i32 i32 i32) (result i32) (i32.const 76))
  (func (export "path_filestat_get") (param i32 i32 i32 i32 i32) (result i32) (i32.const 76))
  (func (export "path_filestat_set_times") (param i32 i32 i32 i32 i64 i64 i32) (result i32) (i32.const 76))
  (func (export "path_link") (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 76))
  (func (export "path_open") (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) (i32.const 76))
  (func (export "path_readlink") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 76))
  (func (export "path_remove_directory") (param i32 i32 i32) (result i32) (i32.const 76))
  (func (export "path_rename") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 76))
  (func (export "path_symlink") (param i32 i32 i32 i32 i32) (result i32) (i32.const 76))
  (func (export "path_unlink_file") (param i32 i32 i32) (result i32) (i32.const 76))
  (func (export "sched_yield") (result i32) (i32.const 0))
  (func (export "proc_raise") (param i32) (result i32) (i32.const 52))
  (func (export "sock_accept") (param i32 i32 i32) (result i32) (i32.const 76))
  (func (export "sock_recv") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 76))
  (func (export "sock_send") (param i32 i32 i32 i32 i32) (result i32) (i32.const 76))
  (func (export "sock_shutdown") (param i32 i32) (result i32) (i32.const 76))
)
