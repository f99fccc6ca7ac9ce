;; A replacement for WASI's preview 1 without effects, for the C library and for Go's runtime. `plugin build` links it to
;; modules that import preview 1, without the functions that they do not use. Their components then import only the
;; contract.
;;
;; It allocates nothing and never calls back into the module, so it may be called in an allocator, in a panic, and while
;; the module grows its memory.
;;
;; The functions with an effect come first, the refused ones at the end.
(module
  (import "env" "memory" (memory 0))
  (import "opilio:plugin/log@0.3.0" "write" (func $log (param $level i32) (param $text i32) (param $length i32)))

  ;; The wall clock in nanoseconds since 1970: 2000-01-01T00:00:00Z.
  (global $wall i64 (i64.const 946684800000000000))
  ;; The monotonic clock. A call starts from the memory and globals of `configure`, so the clock is the same in every
  ;; call.
  (global $passed (mut i64) (i64.const 0))
  ;; State of the random number generator (splitmix64).
  (global $state (mut i64) (i64.const 0))

  ;; There are no arguments and no variables: count and length are 0.
  (func $none (param $count i32) (param $bytes i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $bytes) (i32.const 0))
    (i32.const 0))
  (export "args_sizes_get" (func $none))
  (export "environ_sizes_get" (func $none))

  (func (export "clock_res_get") (param $clock i32) (param $out i32) (result i32)
    (i64.store (local.get $out) (i64.const 1000))
    (i32.const 0))

  ;; The wall clock (0) does not move. Other clocks move by a microsecond at each call, so that no loop waits for ever.
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

  ;; The input is empty.
  (func (export "fd_read") (param $fd i32) (param $vectors i32) (param $count i32) (param $out i32) (result i32)
    (if (local.get $fd) (then (return (i32.const 8))))
    (i32.store (local.get $out) (i32.const 0))
    (i32.const 0))

  ;; Writes output (1) to the log as information and errors (2) as warnings. Each piece is a line, without line feeds at its end.
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

  ;; The three streams are terminals with all rights. No other descriptor is open.
  (func (export "fd_fdstat_get") (param $fd i32) (param $out i32) (result i32)
    (if (i32.gt_u (local.get $fd) (i32.const 2)) (then (return (i32.const 8))))
    (i64.store (local.get $out) (i64.const 2))
    (i64.store offset=8 (local.get $out) (i64.const -1))
    (i64.store offset=16 (local.get $out) (i64.const -1))
    (i32.const 0))

  ;; Waiting takes no time: all subscriptions are ready, and the clock moves to their time.
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

  ;; Ends the instance.
  (func (export "proc_exit") (param $code i32) unreachable)

  ;; No effect (0), or refused: no such descriptor (8), no such function (52), not seekable (70), no right (76).
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
