//! The checked program: names resolved, types known, implicit casts made explicit.

mod tables;

use std::sync::Arc;

use num_bigint::BigInt;

use super::ast::{Annotation, BinaryOp, Direction, UnaryOp};
use super::source::{Name, Span};
use super::types::Type;
pub use tables::{Entry, Key, MatchKind, Table, TableAction, ValueSet};

/// A variable, parameter or instance; unique in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// A program's words about a declaration, for controllers.
pub type Annotations = Arc<[Annotation]>;

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Where it stands.
    pub span: Span,
}

/// The part of a table's result that an expression asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TableResult {
    Hit,
    Miss,
    ActionRun,
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ExprKind {
    /// Of a bit, int or `int` type, or of an enumeration (then its value or index).
    Integer(BigInt),
    Bool(bool),
    Text(Name),
    /// Index among the program's errors.
    Error(usize),
    /// Storage, or a compile-time value of a constructor parameter, or an object.
    Variable(VarId),
    Field(Box<Expr>, usize),
    Index(Box<Expr>, Box<Expr>),
    Next(Box<Expr>),
    Last(Box<Expr>),
    LastIndex(Box<Expr>),
    /// Bits high to low.
    Slice(Box<Expr>, u32, u32),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(Box<Expr>),
    /// Values of all fields in order; a header is valid.
    Aggregate(Vec<Expr>),
    /// An invalid header or union.
    Invalid,
    /// The default value of the type.
    Zero,
    Call(Box<Call>),
    Apply(usize, TableResult),
    Construct(Box<Construct>),
    Table(usize),
    Any,
    Mask(Box<Expr>, Box<Expr>),
    Range(Box<Expr>, Box<Expr>),
    ValueSet(usize),
    /// Has an error, which is reported.
    Broken,
}

/// A constructor call.
#[derive(Clone, Debug)]
pub struct Construct {
    /// The object's type.
    pub ty: Type,
    /// Which of an extern's constructors.
    pub method: usize,
    /// Values of the constructor's parameters.
    pub arguments: Vec<Expr>,
}

/// Methods that the language defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BuiltIn {
    IsValid,
    SetValid,
    SetInvalid,
    PushFront,
    PopFront,
}

/// The callee of a call.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Callee {
    Function(usize),
    Action(usize),
    ExternFunction(usize),
    /// Object, method index of its extern.
    ExternMethod(Expr, usize),
    /// A parser or control; none where a type is applied directly.
    Block(Expr),
    Table(usize),
    BuiltIn(BuiltIn, Expr),
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its callee.
    pub callee: Callee,
    /// Types of the callee's type parameters, in order.
    pub type_arguments: Vec<Type>,
    /// One per parameter.
    pub arguments: Vec<CallArgument>,
    /// Where it stands.
    pub span: Span,
}

/// An argument, matched to its parameter.
#[derive(Clone, Debug)]
pub struct CallArgument {
    /// The value or place; none where it is left out or `_`.
    pub value: Option<Expr>,
    /// Direction of the parameter.
    pub direction: Direction,
    /// Type of the parameter.
    pub ty: Type,
}

/// A parameter.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Parameter {
    pub annotations: Annotations,
    pub variable: VarId,
    pub name: Name,
    pub direction: Direction,
    pub ty: Type,
    pub default: Option<Expr>,
    /// May be left out without a default.
    pub optional: bool,
}

/// Parameters and result of a function or method.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Signature {
    pub name: Name,
    pub type_parameters: Vec<u32>,
    pub parameters: Vec<Parameter>,
    pub result: Type,
    pub is_abstract: bool,
    pub span: Span,
}

/// An extern object's declaration.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Extern {
    pub name: Name,
    pub type_parameters: Vec<u32>,
    /// Result `Void` and the extern's own name for constructors.
    pub methods: Vec<Signature>,
}

/// A function with a body.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Function {
    pub signature: Signature,
    pub body: Vec<Statement>,
}

/// An action.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Action {
    pub annotations: Annotations,
    /// Declared outside of any control, like `NoAction`.
    pub is_global: bool,
    pub name: Name,
    /// As the control plane calls it, from `@name`, with the control's name in front unless it begins with a dot.
    pub path: Name,
    pub parameters: Vec<Parameter>,
    pub body: Vec<Statement>,
}

/// A statement.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Statement {
    Assign {
        target: Expr,
        operator: Option<BinaryOp>,
        value: Expr,
    },
    Call(Call),
    If {
        condition: Expr,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    /// Cases in order; empty labels are `default`.
    Switch {
        value: Expr,
        cases: Vec<SwitchCase>,
    },
    /// On the action that a table ran; labels are actions.
    SwitchAction {
        table: usize,
        cases: Vec<ActionCase>,
    },
    Block(Vec<Statement>),
    Declare {
        variable: VarId,
        name: Name,
        ty: Type,
        value: Option<Expr>,
    },
    Return(Option<Expr>),
    Exit,
    Break,
    Continue,
    For {
        start: Vec<Statement>,
        condition: Expr,
        update: Vec<Statement>,
        body: Vec<Statement>,
    },
    ForIn {
        target: Expr,
        over: Expr,
        body: Vec<Statement>,
    },
}

/// A case of a `switch` over values.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SwitchCase {
    pub labels: Vec<Expr>,
    pub is_default: bool,
    pub body: Vec<Statement>,
}

/// A case of a `switch` over actions.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ActionCase {
    pub actions: Vec<usize>,
    pub is_default: bool,
    pub body: Vec<Statement>,
}

/// The declarations inside of a parser, control or program.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Local {
    Variable { variable: VarId, name: Name, ty: Type, value: Option<Expr> },
    Instance { variable: VarId, path: Name, construct: Construct, annotations: Annotations },
}

/// A state of a parser.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct State {
    pub name: Name,
    pub body: Vec<Statement>,
    pub transition: Transition,
}

/// Index of a state, or one of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum StateRef {
    Accept,
    Reject,
    State(usize),
}

/// Where a state goes.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Transition {
    Direct(StateRef),
    Select { keys: Vec<Expr>, cases: Vec<(Vec<Expr>, StateRef)> },
}

/// The body of a parser or control.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Body {
    /// A type without a body.
    None,
    Parser(Vec<State>),
    Control(Vec<Statement>),
}

/// A parser or control.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Block {
    pub name: Name,
    pub is_parser: bool,
    pub type_parameters: Vec<u32>,
    pub parameters: Vec<Parameter>,
    pub constructor: Vec<Parameter>,
    pub locals: Vec<Local>,
    pub body: Body,
    pub span: Span,
}

/// A package type.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Package {
    pub name: Name,
    pub type_parameters: Vec<u32>,
    pub parameters: Vec<Parameter>,
}

/// A header between a controller and the NIC.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ControllerHeader {
    pub ty: Type,
    pub annotations: Annotations,
    /// One per field.
    pub fields: Vec<Annotations>,
}

/// A checked program.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Checked {
    pub errors: Vec<Name>,
    pub functions: Vec<Function>,
    pub extern_functions: Vec<Signature>,
    pub externs: Vec<Extern>,
    pub actions: Vec<Action>,
    pub tables: Vec<Table>,
    pub value_sets: Vec<ValueSet>,
    pub blocks: Vec<Block>,
    pub packages: Vec<Package>,
    /// Objects at the top level; one of them is `main`.
    pub globals: Vec<Local>,
    pub main: Option<VarId>,
    /// Headers that controllers put before packets or find there (`@controller_header`), with the annotations of fields.
    pub controller_headers: Vec<ControllerHeader>,
}
