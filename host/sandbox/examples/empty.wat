;; The least that is a plugin: an extractor that finds nothing and a filter that has no opinion.
;; Address 0 on reads as zeroes. From 1024: the description; from 4096: answers.
(module
  (import "opilio:plugin/documents@0.3.0" "[method]candidates.length" (func $length (param i32) (result i32)))
  (import "opilio:plugin/documents@0.3.0" "[resource-drop]candidates" (func $drop-candidates (param i32)))
  (import "opilio:plugin/documents@0.3.0" "[resource-drop]document" (func $drop-document (param i32)))
  (import "opilio:plugin/documents@0.3.0" "[resource-drop]visit" (func $drop-visit (param i32)))
  (memory (export "memory") 2)
  (global $free (mut i32) (i32.const 8192))
  (func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func (export "opilio:plugin/setup@0.3.0#describe") (result i32) (i32.const 1024))
  (func (export "opilio:plugin/setup@0.3.0#configure") (param i32 i32 i32 i32) (result i32) (i32.const 0))
  ;; One extraction of zeroes.
  (func (export "opilio:plugin/extractor@0.3.0#extract") (param i32 i32) (result i32) (i32.const 4096))
  ;; As many rulings as candidates, each `pass` (2).
  (func (export "opilio:plugin/filter@0.3.0#judge-candidates") (param i32 i32 i32 i32) (result i32)
    (local $n i32) (local $list i32) (local $i i32)
    (local.set $n (call $length (local.get 3)))
    (local.set $list
      (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.mul (local.get $n) (i32.const 24))))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
      (i32.store8 (i32.add (local.get $list) (i32.mul (local.get $i) (i32.const 24))) (i32.const 2))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next)))
    (i32.store (i32.const 4112) (local.get $list))
    (i32.store (i32.const 4116) (local.get $n))
    (call $drop-candidates (local.get 3))
    (i32.const 4112))
  (func (export "opilio:plugin/filter@0.3.0#judge-document") (param i32 i32 i32 i32 i32) (result i32)
    (call $drop-document (local.get 3))
    (call $drop-visit (local.get 4))
    (i32.const 0))
  ;; list<description>: address, length
  (data (i32.const 1024) "\08\04\00\00\01\00\00\00")
  ;; name, version, summary: address and length each; kinds; media types and URIs; schema; keeps; attributes
  (data (i32.const 1032)
    "\00\08\00\00\05\00\00\00" "\10\08\00\00\05\00\00\00" "\00\00\00\00\00\00\00\00"
    "\00\05\00\00\02\00\00\00" "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00"
    "\20\08\00\00\02\00\00\00" "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00")
  ;; kinds: extractor (0), filter (1)
  (data (i32.const 1280) "\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00")
  (data (i32.const 2048) "empty")
  (data (i32.const 2064) "1.0.0")
  (data (i32.const 2080) "{}")
  ;; list<extraction> with one, at 4352
  (data (i32.const 4096) "\00\11\00\00\01\00\00\00"))
