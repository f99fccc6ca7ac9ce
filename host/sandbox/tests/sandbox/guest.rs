//! Builds guests for the tests: a core module in the text format, with its answers laid out in memory as the canonical ABI
//! requires, wrapped as a component of the contract in `wit/`.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Start of a guest's data; its heap follows at `HEAP`.
const DATA: u32 = 1024;
const HEAP: u32 = 32 * 1024;

/// Data of a guest, and the addresses in it.
#[derive(Default)]
pub(crate) struct Data(Vec<u8>);

impl Data {
    /// Adds 32-bit words, aligned to 8 bytes, and returns their address.
    pub(crate) fn words(&mut self, words: &[u32]) -> u32 {
        while !self.0.len().is_multiple_of(8) {
            self.0.push(0);
        }
        let at = DATA + self.0.len() as u32;
        self.0
            .extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at
    }

    /// Adds a text and returns its address and length, which is how a string or list of bytes is passed.
    pub(crate) fn text(&mut self, text: &str) -> [u32; 2] {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> [u32; 2] {
        let at = DATA + self.0.len() as u32;
        self.0.extend(bytes);
        [at, bytes.len() as u32]
    }

    /// Replaces each `'text'` in the instructions by that text's address and length.
    pub(crate) fn with_texts(&mut self, body: &str) -> String {
        let parts = body.split('\'').enumerate().map(|(i, part)| {
            if i % 2 == 0 {
                return part.to_owned();
            }
            let [at, length] = self.text(part);
            format!("(i32.const {at}) (i32.const {length})")
        });
        parts.collect()
    }

    fn escaped(&self) -> String {
        self.0.iter().map(|byte| format!("\\{byte:02x}")).collect()
    }
}

/// One plugin as `describe` returns it. Kinds are the numbers of their cases.
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kinds: &'static [u32],
    pub(crate) media_types: &'static [&'static str],
    pub(crate) schema: &'static str,
    /// Names of the values that the plugin keeps, each with the number of its keeper's case. All have version 1.
    pub(crate) keeps: &'static [(&'static str, u32)],
}

pub(crate) const EXTRACTOR: u32 = 0;
pub(crate) const FILTER: u32 = 1;
pub(crate) const STRIPPER: u32 = 2;
pub(crate) const CHANGE: u32 = 3;
pub(crate) const WAIT: u32 = 4;
pub(crate) const PRECEDENCE: u32 = 5;
pub(crate) const OBSERVER: u32 = 6;
pub(crate) const PAGE_BEHAVIOR: u32 = 7;

impl Default for Described {
    fn default() -> Self {
        Self {
            name: "guest",
            version: "1.0.0",
            kinds: &[FILTER],
            media_types: &[],
            schema: "{}",
            keeps: &[],
        }
    }
}

/// Builder of a guest. Bodies are WAT instructions that leave an address as the result.
pub(crate) struct Guest {
    pub(crate) world: &'static str,
    pub(crate) described: Vec<Described>,
    /// Imports, as WAT.
    pub(crate) imports: &'static str,
    /// Body of `describe`, if it does more than return the description.
    pub(crate) describe: Option<&'static str>,
    /// Body of `configure`: locals 0 to 3 are name and settings. A result of zeroes at addresses 0 to 11 means success.
    pub(crate) configure: String,
    /// Exported functions of the plugin's kinds, as WAT.
    pub(crate) functions: String,
    /// Further fields of the module.
    pub(crate) fields: String,
    pub(crate) data: Data,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            world: "filter-plugin",
            described: vec![Described::default()],
            imports: "",
            describe: None,
            configure: "(i32.const 0)".to_owned(),
            functions: String::new(),
            fields: String::new(),
            data: Data::default(),
        }
    }
}

impl Guest {
    /// A filter. `candidates` is the body of its function, with the stage in locals 0 to 2, the handle in 3 and the number of
    /// candidates in 4. The body may call `$rulings` with a number of candidates and a verdict: it returns the address of that many
    /// rulings.
    pub(crate) fn filter(candidates: &str) -> Self {
        Self {
            functions: filter_functions(candidates, "(i32.const 0)"),
            ..Self::default()
        }
    }

    /// A filter of documents.
    pub(crate) fn document_filter(document: &str) -> Self {
        Self {
            functions: filter_functions("(call $rulings (local.get 4) (i32.const 0))", document),
            ..Self::default()
        }
    }

    /// An extractor; `extract` is the body of its function, with the list of handles in locals 0 and 1.
    pub(crate) fn extractor(extract: &str) -> Self {
        Self {
            world: "extractor-plugin",
            described: vec![Described {
                kinds: &[EXTRACTOR],
                ..Described::default()
            }],
            functions: format!(
                r#"(func (export "opilio:plugin/extractor@0.3.0#extract") (param i32 i32) (result i32) {extract})"#
            ),
            ..Self::default()
        }
    }

    /// A digest stripper.
    pub(crate) fn stripper(strip: &str) -> Self {
        Self {
            world: "digest-stripper-plugin",
            described: vec![Described {
                kinds: &[STRIPPER],
                ..Described::default()
            }],
            functions: format!(
                r#"(func $strip (param i32) (result i32) {strip})
                (func (export "opilio:plugin/digest-stripper@0.3.0#strip") (param i32) (result i32)
                    (call $strip (local.get 0)) (call $drop-document (local.get 0)))"#
            ),
            ..Self::default()
        }
    }

    /// A wait evaluator.
    pub(crate) fn wait_evaluator(evaluate: &str) -> Self {
        Self {
            world: "wait-evaluator-plugin",
            described: vec![Described {
                kinds: &[WAIT],
                ..Described::default()
            }],
            functions: format!(
                r#"(func $evaluate (param i32) (result i32) {evaluate})
                (func (export "opilio:plugin/wait-evaluator@0.3.0#evaluate") (param i32) (result i32)
                    (call $evaluate (local.get 0)) (call $drop-visit (local.get 0)))"#
            ),
            ..Self::default()
        }
    }

    /// A change evaluator, with document, visit and last fingerprint in locals 0 to 4.
    pub(crate) fn change_evaluator(compare: &str) -> Self {
        Self {
            world: "change-evaluator-plugin",
            described: vec![Described {
                kinds: &[CHANGE],
                ..Described::default()
            }],
            functions: format!(
                r#"(func $compare (param i32 i32 i32 i32 i32) (result i32) {compare})
                (func (export "opilio:plugin/change-evaluator@0.3.0#compare")
                    (param i32 i32 i32 i32 i32) (result i32)
                    (call $compare
                        (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4))
                    (call $drop-document (local.get 0)) (call $drop-visit (local.get 1)))"#
            ),
            ..Self::default()
        }
    }

    /// A precedence plugin. `candidates` has the handles of candidates and document in locals 0 to 2, and the number of
    /// candidates in 3; `queue` the handle of the queue in local 0.
    pub(crate) fn precedence(candidates: &str, queue: &str) -> Self {
        Self {
            world: "precedence-plugin",
            described: vec![Described {
                kinds: &[PRECEDENCE],
                ..Described::default()
            }],
            functions: format!(
                r#"(func $rank-candidates (param i32 i32 i32 i32) (result i32) {candidates})
                (func (export "opilio:plugin/precedence@0.3.0#rank-candidates") (param i32 i32 i32) (result i32)
                    (call $rank-candidates
                        (local.get 0) (local.get 1) (local.get 2) (call $candidates-length (local.get 0)))
                    (call $drop-candidates (local.get 0))
                    (if (local.get 1) (then (call $drop-document (local.get 2)))))
                (func $rank-queue (param i32) (result i32) {queue})
                (func (export "opilio:plugin/precedence@0.3.0#rank-queue") (param i32) (result i32)
                    (call $rank-queue (local.get 0)) (call $drop-queue (local.get 0)))"#
            ),
            ..Self::default()
        }
    }

    /// An observer. `observe` has memory and events as address and length in locals 0 to 3; `report` the memory in 0 and
    /// 1, and the time in 2.
    pub(crate) fn observer(observe: &str, report: &str) -> Self {
        Self {
            world: "observer-plugin",
            described: vec![Described {
                kinds: &[OBSERVER],
                ..Described::default()
            }],
            functions: format!(
                r#"(func (export "opilio:plugin/observer@0.3.0#observe") (param i32 i32 i32 i32) (result i32)
                    {observe})
                (func (export "opilio:plugin/observer@0.3.0#report") (param i32 i32 i64) (result i32)
                    {report})"#
            ),
            ..Self::default()
        }
    }

    /// A page behaviour, with the handles of page and visit in locals 0 and 1, and the memory in 2 and 3.
    pub(crate) fn page_behavior(step: &str) -> Self {
        Self {
            world: "page-behavior-plugin",
            described: vec![Described {
                kinds: &[PAGE_BEHAVIOR],
                ..Described::default()
            }],
            imports: r#"(import "opilio:plugin/documents@0.3.0" "[resource-drop]page" (func $drop-page (param i32)))"#,
            functions: format!(
                r#"(func $step (param i32 i32 i32 i32) (result i32) {step})
                (func (export "opilio:plugin/page-behavior@0.3.0#step") (param i32 i32 i32 i32) (result i32)
                    (call $step (local.get 0) (local.get 1) (local.get 2) (local.get 3))
                    (call $drop-page (local.get 0)) (call $drop-visit (local.get 1)))"#
            ),
            ..Self::default()
        }
    }

    /// Builds the component.
    pub(crate) fn build(self) -> Vec<u8> {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(contract_directory()).unwrap();
        self.build_for(&resolve, package)
    }

    /// Builds the component for another edition of the contract. `edit` changes each contract file, and `more` is an additional
    /// file.
    pub(crate) fn build_with_contract(self, edit: impl Fn(&str) -> String, more: &str) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(contract_directory()).unwrap() {
            let file = file.unwrap();
            if file
                .path()
                .extension()
                .is_some_and(|extension| extension == "wit")
            {
                let text = std::fs::read_to_string(file.path()).unwrap();
                std::fs::write(directory.path().join(file.file_name()), edit(&text)).unwrap();
            }
        }
        if !more.is_empty() {
            std::fs::write(directory.path().join("more.wit"), more).unwrap();
        }
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(directory.path()).unwrap();
        self.build_for(&resolve, package)
    }

    /// Builds the component for a published version of the contract. `more` is an additional contract file.
    pub(crate) fn build_published(self, version: &str, more: &str) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let published = contract_directory().join("published").join(version);
        for file in std::fs::read_dir(published).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), directory.path().join(file.file_name())).unwrap();
        }
        std::fs::write(directory.path().join("more.wit"), more).unwrap();
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(directory.path()).unwrap();
        self.build_for(&resolve, package)
    }

    fn build_for(self, resolve: &Resolve, package: wit_parser::PackageId) -> Vec<u8> {
        let world = resolve.select_world(&[package], Some(self.world)).unwrap();
        let version = resolve.packages[package]
            .name
            .version
            .as_ref()
            .unwrap()
            .to_string();
        let mut module = self.module(&version);
        embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).unwrap();
        ComponentEncoder::default()
            .validate(true)
            .module(&module)
            .unwrap()
            .encode()
            .unwrap()
    }

    /// Writes the core module in the text format and compiles it.
    pub(crate) fn module(mut self, version: &str) -> Vec<u8> {
        let described = self.lay_out_description();
        let describe = self
            .describe
            .map_or(format!("(i32.const {described})"), str::to_owned);
        let wat = format!(
            r#"(module
                {imports}
                (import "opilio:plugin/documents@0.3.0" "[resource-drop]document" (func $drop-document (param i32)))
                (import "opilio:plugin/documents@0.3.0" "[resource-drop]visit" (func $drop-visit (param i32)))
                (import "opilio:plugin/documents@0.3.0" "[resource-drop]candidates" (func $drop-candidates (param i32)))
                (import "opilio:plugin/documents@0.3.0" "[resource-drop]queue" (func $drop-queue (param i32)))
                (import "opilio:plugin/documents@0.3.0" "[method]candidates.length" (func $candidates-length (param i32) (result i32)))
                (memory (export "memory") 1)
                (global $free (mut i32) (i32.const {HEAP}))
                (func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                    (local $at i32)
                    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
                    (global.set $free (i32.add (local.get $at) (local.get 3)))
                    (block $enough (loop $grow
                        (br_if $enough (i32.le_u (global.get $free) (i32.shl (memory.size) (i32.const 16))))
                        (drop (memory.grow (i32.const 1)))
                        (br $grow)))
                    (local.get $at))
                ;; As many rulings as there are candidates, all with one verdict: the address of address and length.
                (func $rulings (param $n i32) (param $verdict i32) (result i32)
                    (local $list i32) (local $answer i32) (local $i i32)
                    (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 8)
                        (i32.mul (local.get $n) (i32.const 24))))
                    (local.set $answer (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 8)))
                    (i32.store (local.get $answer) (local.get $list))
                    (i32.store (i32.add (local.get $answer) (i32.const 4)) (local.get $n))
                    (block $done (loop $next
                        (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
                        (i32.store8
                            (i32.add (local.get $list) (i32.mul (local.get $i) (i32.const 24)))
                            (local.get $verdict))
                        (local.set $i (i32.add (local.get $i) (i32.const 1)))
                        (br $next)))
                    (local.get $answer))
                (func (export "opilio:plugin/setup@0.3.0#describe") (result i32) {describe})
                (func (export "opilio:plugin/setup@0.3.0#configure") (param i32 i32 i32 i32) (result i32) {configure})
                {functions}
                {fields}
                (data (i32.const {DATA}) "{data}"))"#,
            imports = self.imports,
            configure = self.configure,
            functions = self.functions,
            fields = self.fields,
            data = self.data.escaped(),
        );
        wat::parse_str(wat.replace("@0.3.0", &format!("@{version}"))).unwrap()
    }

    fn lay_out_description(&mut self) -> u32 {
        let data = &mut self.data;
        let mut records = Vec::new();
        for plugin in &self.described {
            let kinds: Vec<u32> = plugin.kinds.iter().flat_map(|kind| [*kind, 0, 0]).collect();
            let media_types: Vec<u32> = plugin
                .media_types
                .iter()
                .flat_map(|text| data.text(text))
                .collect();
            records.extend(data.text(plugin.name));
            records.extend(data.text(plugin.version));
            records.extend(data.text("for tests"));
            records.extend([data.words(&kinds), plugin.kinds.len() as u32]);
            records.extend([data.words(&media_types), plugin.media_types.len() as u32]);
            records.extend([0, 0]);
            records.extend(data.text(plugin.schema));
            let keeps: Vec<u32> = plugin
                .keeps
                .iter()
                .flat_map(|(name, keeper)| {
                    let [at, length] = data.text(name);
                    [at, length, *keeper, 0, 0, 1]
                })
                .collect();
            records.extend([data.words(&keeps), plugin.keeps.len() as u32]);
            records.extend([0, 0]);
        }
        let list = data.words(&records);
        data.words(&[list, self.described.len() as u32])
    }
}

fn filter_functions(candidates: &str, document: &str) -> String {
    format!(
        r#"(func $judge-candidates (param i32 i32 i32 i32 i32) (result i32)
                {candidates})
            (func (export "opilio:plugin/filter@0.3.0#judge-candidates") (param i32 i32 i32 i32) (result i32)
                (call $judge-candidates
                    (local.get 0) (local.get 1) (local.get 2) (local.get 3)
                    (call $candidates-length (local.get 3)))
                (call $drop-candidates (local.get 3)))
            (func $judge-document (param i32 i32 i32 i32 i32) (result i32)
                {document})
            (func (export "opilio:plugin/filter@0.3.0#judge-document") (param i32 i32 i32 i32 i32) (result i32)
                (call $judge-document
                    (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4))
                (call $drop-document (local.get 3))
                (call $drop-visit (local.get 4)))"#
    )
}

fn contract_directory() -> std::path::PathBuf {
    // The crates that share this file are at different depths of the repository.
    let of_crate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut above = of_crate.ancestors().map(|folder| folder.join("wit"));
    above.find(|wit| wit.join("published").is_dir()).unwrap()
}
