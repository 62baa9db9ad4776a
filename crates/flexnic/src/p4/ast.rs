//! The syntax tree: what the program says, before names and types have a meaning.

use super::source::{Name, Span};
use super::token::Number;

/// A name and where it stands.
#[derive(Clone, Debug)]
pub struct Ident {
    /// The name.
    pub name: Name,
    /// Where it stands.
    pub span: Span,
}

/// `@name(...)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Name without `@`.
    pub name: Name,
    /// Strings and integers among its arguments, as text.
    pub values: Vec<Name>,
    /// The whole annotation as controllers see it: `@name("text")`.
    pub text: Name,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct TypeRef {
    /// Its kind.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of types as written.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each variant is the keyword of its name")]
pub enum TypeKind {
    Void,
    Bool,
    Error,
    MatchKind,
    Text,
    /// `int` without a width.
    Integer,
    Bit(Option<Box<Expr>>),
    Int(Box<Expr>),
    Varbit(Box<Expr>),
    /// A declared name; `.name` looks only at the top level.
    Named {
        name: Ident,
        global: bool,
        arguments: Vec<TypeRef>,
    },
    Stack(Box<TypeRef>, Box<Expr>),
    Tuple(Vec<TypeRef>),
    List(Box<TypeRef>),
    /// `_`
    Any,
}

/// Direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the keyword of its name")]
pub enum Direction {
    /// No direction: compile-time value, or data from the control plane in an action.
    None,
    In,
    Out,
    InOut,
}

/// A parameter of anything that can be called.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Parameter {
    pub annotations: Vec<Annotation>,
    pub direction: Direction,
    pub ty: TypeRef,
    pub name: Ident,
    pub default: Option<Expr>,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum UnaryOp {
    Not,
    Complement,
    Negate,
    Plus,
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BinaryOp {
    Add,
    Sub,
    AddSat,
    SubSat,
    Mul,
    Div,
    Mod,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    Xor,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    AndAlso,
    OrElse,
    Concat,
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ExprKind {
    Number(Number),
    Bool(bool),
    Text(Name),
    Name {
        name: Ident,
        global: bool,
    },
    This,
    Member(Box<Expr>, Ident),
    /// `Type.member`, `error.name`.
    TypeMember(TypeRef, Ident),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(TypeRef, Box<Expr>),
    Call {
        callee: Box<Expr>,
        type_arguments: Vec<TypeRef>,
        arguments: Vec<Argument>,
    },
    /// A type that is called: a constructor.
    Type(TypeRef),
    /// `{ a, b }`; `dots` for a trailing `...`.
    List {
        items: Vec<Expr>,
        dots: bool,
    },
    /// `{ name = value, ... }`
    Record {
        fields: Vec<(Ident, Expr)>,
        dots: bool,
    },
    /// `{#}`
    Invalid,
    /// `...` as an initializer.
    Dots,
    Mask(Box<Expr>, Box<Expr>),
    Range(Box<Expr>, Box<Expr>),
    /// `_` or `default` in a set.
    Any,
    Default,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub struct Argument {
    /// `name = value`
    pub name: Option<Ident>,
    /// None for `_`.
    pub value: Option<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its kind.
    pub kind: StatementKind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of statements.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum StatementKind {
    Empty,
    Assign { target: Expr, operator: Option<BinaryOp>, value: Expr },
    Call(Expr),
    If { condition: Expr, then: Box<Statement>, otherwise: Option<Box<Statement>> },
    Switch { value: Expr, cases: Vec<SwitchCase> },
    Block(Vec<Statement>),
    Declaration(Box<Declaration>),
    Return(Option<Expr>),
    Exit,
    Break,
    Continue,
    For { start: Vec<Statement>, condition: Expr, update: Vec<Statement>, body: Box<Statement> },
    ForIn { declaration: Option<(TypeRef, Ident)>, target: Option<Expr>, over: Expr, body: Box<Statement> },
}

/// One label of a `switch`; without a body it falls through.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SwitchCase {
    pub label: Expr,
    pub body: Option<Statement>,
}

/// A declaration.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its name; empty for `error` and `match_kind`.
    pub name: Ident,
    /// Its kind.
    pub kind: DeclarationKind,
    /// Where it stands.
    pub span: Span,
}

/// Struct-like types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the keyword of its name")]
pub enum StructKind {
    Struct,
    Header,
    Union,
}

/// A field of a struct-like type.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FieldDecl {
    pub annotations: Vec<Annotation>,
    pub ty: TypeRef,
    pub name: Ident,
}

/// Parameters and result of a function, method or constructor.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Prototype {
    /// None for a constructor.
    pub result: Option<TypeRef>,
    pub name: Ident,
    pub type_parameters: Vec<Ident>,
    pub parameters: Vec<Parameter>,
    pub is_abstract: bool,
}

/// Kinds of declarations.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DeclarationKind {
    Constant { ty: TypeRef, value: Expr },
    Variable { ty: TypeRef, value: Option<Expr> },
    Typedef { ty: TypeRef, is_new: bool },
    Struct { kind: StructKind, type_parameters: Vec<Ident>, fields: Vec<FieldDecl> },
    Enum { underlying: Option<TypeRef>, members: Vec<(Ident, Option<Expr>)> },
    Errors(Vec<Ident>),
    MatchKinds(Vec<Ident>),
    Extern { type_parameters: Vec<Ident>, methods: Vec<Prototype> },
    ExternFunction(Prototype),
    Function(Prototype, Vec<Statement>),
    Action { parameters: Vec<Parameter>, body: Vec<Statement> },
    Parser(Box<ParserDecl>),
    Control(Box<ControlDecl>),
    Package { type_parameters: Vec<Ident>, parameters: Vec<Parameter> },
    Instance { ty: TypeRef, arguments: Vec<Argument>, methods: Vec<Declaration> },
    Table(Box<TableDecl>),
    ValueSet { ty: TypeRef, size: Expr },
}

/// A parser; without states it is a type.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ParserDecl {
    pub type_parameters: Vec<Ident>,
    pub parameters: Vec<Parameter>,
    pub constructor: Vec<Parameter>,
    pub locals: Vec<Declaration>,
    pub states: Option<Vec<State>>,
}

/// A control; without `apply` it is a type.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ControlDecl {
    pub type_parameters: Vec<Ident>,
    pub parameters: Vec<Parameter>,
    pub constructor: Vec<Parameter>,
    pub locals: Vec<Declaration>,
    pub apply: Option<Vec<Statement>>,
}

/// A parser state.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct State {
    pub name: Ident,
    pub body: Vec<Statement>,
    pub transition: Transition,
}

/// Where a state goes.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Transition {
    /// No `transition`: reject.
    None,
    Direct(Ident),
    Select {
        keys: Vec<Expr>,
        cases: Vec<(Vec<Expr>, Ident)>,
        span: Span,
    },
}

/// A table.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TableDecl {
    pub keys: Vec<KeyElement>,
    pub actions: Vec<ActionRef>,
    pub default: Option<(Expr, bool)>,
    pub entries: Option<(Vec<Entry>, bool)>,
    /// Other properties: name, value, `const`.
    pub properties: Vec<(Ident, Expr, bool)>,
    pub has_actions: bool,
}

/// `expression : match_kind`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct KeyElement {
    pub value: Expr,
    pub match_kind: Ident,
    pub annotations: Vec<Annotation>,
}

/// An action in a table's list, with arguments bound by the program.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ActionRef {
    pub action: Expr,
    pub annotations: Vec<Annotation>,
}

/// An entry written in the program.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Entry {
    pub keys: Vec<Expr>,
    pub action: Expr,
    pub priority: Option<Expr>,
    pub annotations: Vec<Annotation>,
    pub is_const: bool,
    pub span: Span,
}
