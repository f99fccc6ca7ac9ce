//! Bounds of a component's functions, checked before they are compiled. The compiler's time and memory grow with the size of a
//! function, and with the product of its variables and loops. Each loop merges every variable that is live in it.
//!
//! These bounds refuse known expensive cases with their names. Functions within them may still be expensive, so the compiler
//! itself runs in a process that can be stopped ([`crate::compiler`]).

use wasmparser::{FunctionBody, Operator, Parser, Payload};

/// Largest function, in bytes. Interpreters written in C, the largest known, have functions of some 100 KiB.
const FUNCTION_BYTES_MAX: usize = 1 << 20;
/// Local variables of a function times its loops plus one. The compiler takes one to two KiB for each. 1,000 variables in 100
/// loops took 100 MiB and 1.5 s of processor time (measured in a debug build).
const VARIABLES_TIMES_LOOPS_MAX: u64 = 500_000;
/// Core functions of a component. Python has some 15,000.
const FUNCTIONS_MAX: u32 = 200_000;

/// Checks every function of a component, including those of nested modules and components.
///
/// # Errors
/// A fragment that names the function and the bound. Components that cannot be parsed pass: the validator reports the error.
pub(crate) fn check(component: &[u8]) -> Result<(), String> {
    let mut functions = 0;
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::CodeSectionEntry(body)) => {
                check_function(&body, functions)?;
                functions += 1;
            }
            Ok(_) => {}
            Err(_) => return Ok(()),
        }
        if functions > FUNCTIONS_MAX {
            return Err(format!(
                "it has more than {FUNCTIONS_MAX} functions; build a smaller one"
            ));
        }
    }
    Ok(())
}

fn check_function(body: &FunctionBody<'_>, number: u32) -> Result<(), String> {
    let bytes = body.range().len();
    if bytes > FUNCTION_BYTES_MAX {
        return Err(format!(
            "function {number} has {bytes} bytes; {FUNCTION_BYTES_MAX} are allowed: divide it"
        ));
    }
    let Ok((variables, loops)) = variables_and_loops(body) else {
        return Ok(());
    };
    match variables.saturating_mul(loops + 1) > VARIABLES_TIMES_LOOPS_MAX {
        true => Err(format!(
            "function {number} has {variables} local variables and {loops} loops; their product may be \
             {VARIABLES_TIMES_LOOPS_MAX}: divide the function, or optimise"
        )),
        false => Ok(()),
    }
}

fn variables_and_loops(body: &FunctionBody<'_>) -> wasmparser::Result<(u64, u64)> {
    let mut variables = 0;
    for local in body.get_locals_reader()? {
        variables += u64::from(local?.0);
    }
    let mut loops = 0;
    for operator in body.get_operators_reader()? {
        loops += u64::from(matches!(operator?, Operator::Loop { .. }));
    }
    Ok((variables, loops))
}
