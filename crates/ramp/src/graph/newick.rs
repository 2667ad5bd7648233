//! Trees in the Newick notation, read and written.

use super::message::label;
use super::rooted::Rooted;
use super::unchecked::Unchecked;
use super::{FactorTree, GraphError, Kind, VariableId};
use std::collections::HashSet;
use std::iter::Peekable;
use std::str::Chars;

impl FactorTree {
    /// The tree of a Newick text such as `((x1,x2)a,(x3,x4)b)root;`. Leaves are observations; inner nodes are
    /// latents, and those without a name are called `z1`, `z2`, … as their parentheses open. Branch lengths and
    /// `[comments]` are passed over, and `'quoted names'` may hold anything, with `''` for a quote.
    ///
    /// ```
    /// use ramp::graph::FactorTree;
    ///
    /// let tree = FactorTree::from_newick("((human:0.1, chimp:0.2)apes, 'house mouse')[a comment];")?;
    /// assert_eq!(tree.to_newick()?, "((human,chimp)apes,'house mouse')z1;");
    ///
    /// let error = FactorTree::from_newick("((a,b),c;").unwrap_err();
    /// assert_eq!(error.to_string(), "Newick text, column 9: expected `:`, `,` or `)`, found `;`");
    /// # Ok::<(), ramp::graph::GraphError>(())
    /// ```
    pub fn from_newick(text: &str) -> Result<Self, GraphError> {
        let mut nodes = parse(text)?;
        name_the_unnamed(&mut nodes);
        let mut draft = Unchecked::new();
        for (position, node) in nodes.into_iter().enumerate() {
            draft.variable(node.name.unwrap_or_default(), node.kind);
            if let Some(parent) = node.parent {
                draft.factor(&[parent, position]);
            }
        }
        draft.finish()
    }

    /// The tree in Newick notation, rooted at its first latent; an error if a factor joins more than two variables.
    pub fn to_newick(&self) -> Result<String, GraphError> {
        if let Some(factor) = self
            .factors()
            .find(|&factor| self.variables_of(factor).len() > 2)
        {
            return Err(GraphError::NotPairwise {
                members: self.names_of(factor),
            });
        }
        enum Step {
            Enter(VariableId),
            Leave(VariableId),
            Comma,
        }
        let rooted = Rooted::new(self);
        let mut text = String::new();
        let mut steps = vec![Step::Enter(self.root())];
        while let Some(step) = steps.pop() {
            match step {
                Step::Comma => text.push(','),
                Step::Leave(variable) => {
                    text.push(')');
                    text.push_str(&label(self.name(variable)));
                }
                Step::Enter(variable) if !self.is_latent(variable) => {
                    text.push_str(&label(self.name(variable)))
                }
                Step::Enter(variable) => {
                    text.push('(');
                    steps.push(Step::Leave(variable));
                    let children = rooted
                        .outward(self, variable)
                        .rev()
                        .flat_map(|factor| self.variables_of(factor));
                    for (position, &child) in
                        children.filter(|&&child| child != variable).enumerate()
                    {
                        if position > 0 {
                            steps.push(Step::Comma);
                        }
                        steps.push(Step::Enter(child));
                    }
                }
            }
        }
        text.push(';');
        Ok(text)
    }
}

/// A node of the text, in the order in which nodes open.
struct Node {
    name: Option<String>,
    kind: Kind,
    parent: Option<usize>,
}

fn name_the_unnamed(nodes: &mut [Node]) {
    let taken: HashSet<String> = nodes.iter().filter_map(|node| node.name.clone()).collect();
    let mut fresh = (1_usize..)
        .map(|number| format!("z{number}"))
        .filter(|name| !taken.contains(name));
    for node in nodes.iter_mut().filter(|node| node.name.is_none()) {
        node.name = fresh.next();
    }
}

/// What may follow a complete node.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum After {
    /// A closing parenthesis: a name, a length or the end of the node.
    Close,
    /// A name: a length or the end of the node.
    Name,
    /// A length: the end of the node.
    Length,
}

fn parse(text: &str) -> Result<Vec<Node>, GraphError> {
    let mut tokens = Tokens::new(text);
    let mut nodes: Vec<Node> = Vec::new();
    // Inner nodes whose parenthesis is still open.
    let mut open: Vec<usize> = Vec::new();
    loop {
        // A node begins here.
        let place = tokens.place_of_next()?;
        let parent = open.last().copied();
        match tokens.next()? {
            Token::Mark('(') => {
                open.push(nodes.len());
                nodes.push(Node {
                    name: None,
                    kind: Kind::Latent,
                    parent,
                });
                continue;
            }
            Token::Name(name) => nodes.push(Node {
                name: Some(name),
                kind: Kind::Observed,
                parent,
            }),
            found => return Err(place.error("the name of an observation or `(`", &found)),
        }
        // The node is complete; it ends here, and perhaps the nodes around it.
        let mut node = nodes.len() - 1;
        let mut after = After::Name;
        loop {
            let place = tokens.place_of_next()?;
            match tokens.next()? {
                Token::Name(name) if after == After::Close => {
                    nodes[node].name = Some(name);
                    after = After::Name;
                }
                Token::Mark(':') if after < After::Length => {
                    tokens.length()?;
                    after = After::Length;
                }
                Token::Mark(',') if !open.is_empty() => break,
                Token::Mark(')') if !open.is_empty() => {
                    node = open.pop().unwrap_or_default();
                    after = After::Close;
                }
                Token::Mark(';') if open.is_empty() => {
                    let place = tokens.place_of_next()?;
                    return match tokens.next()? {
                        Token::End => Ok(nodes),
                        found => Err(place.error("nothing after `;`", &found)),
                    };
                }
                found => {
                    let mut expected = match after {
                        After::Close => vec!["a name", "`:`"],
                        After::Name => vec!["`:`"],
                        After::Length => vec![],
                    };
                    expected.extend(if open.is_empty() {
                        &["`;`"][..]
                    } else {
                        &["`,`", "`)`"]
                    });
                    return Err(place.error(&any_of(&expected), &found));
                }
            }
        }
    }
}

fn any_of(choices: &[&str]) -> String {
    match choices {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

enum Token {
    /// One of `(),:;`, or a character that has no place here.
    Mark(char),
    Name(String),
    End,
}

/// Where something stands, for the error message.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn error(self, expected: &str, found: &Token) -> GraphError {
        let found = match found {
            Token::Mark(mark) => format!("`{mark}`"),
            Token::Name(name) => format!("the name `{name}`"),
            Token::End => "the end of the text".to_owned(),
        };
        GraphError::Newick {
            line: self.line,
            column: self.column,
            expected: expected.to_owned(),
            found,
        }
    }
}

/// The text cut into names and marks, without blanks and comments.
struct Tokens<'a> {
    characters: Peekable<Chars<'a>>,
    place: Place,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Tokens {
            characters: text.chars().peekable(),
            place: Place { line: 1, column: 1 },
        }
    }

    fn take(&mut self) -> Option<char> {
        let character = self.characters.next()?;
        if character == '\n' {
            self.place = Place {
                line: self.place.line + 1,
                column: 1,
            };
        } else {
            self.place.column += 1;
        }
        Some(character)
    }

    /// Passes over blanks and comments; then says where it stands.
    fn place_of_next(&mut self) -> Result<Place, GraphError> {
        while let Some(&character) = self.characters.peek() {
            if character == '[' {
                let start = self.place;
                while self
                    .take()
                    .ok_or_else(|| start.error("a comment that `]` closes", &Token::Mark('[')))?
                    != ']'
                {}
            } else if character.is_whitespace() {
                self.take();
            } else {
                break;
            }
        }
        Ok(self.place)
    }

    fn next(&mut self) -> Result<Token, GraphError> {
        let place = self.place_of_next()?;
        match self.characters.peek() {
            None => Ok(Token::End),
            Some('\'') => self.quoted(place),
            Some(&character) if is_mark(character) => {
                self.take();
                Ok(Token::Mark(character))
            }
            Some(_) => Ok(Token::Name(self.plain())),
        }
    }

    fn quoted(&mut self, start: Place) -> Result<Token, GraphError> {
        self.take();
        let mut name = String::new();
        loop {
            match self.take() {
                None => {
                    return Err(
                        start.error("a name that a second quote closes", &Token::Mark('\''))
                    );
                }
                Some('\'') if self.characters.peek() == Some(&'\'') => {
                    self.take();
                    name.push('\'');
                }
                Some('\'') => return Ok(Token::Name(name)),
                Some(character) => name.push(character),
            }
        }
    }

    fn plain(&mut self) -> String {
        let mut name = String::new();
        while let Some(&character) = self.characters.peek() {
            if is_mark(character) || character.is_whitespace() || "[']".contains(character) {
                break;
            }
            name.push(character);
            self.take();
        }
        name
    }

    /// A branch length, which must be a number and is then forgotten: messages learn their own strengths.
    fn length(&mut self) -> Result<(), GraphError> {
        let place = self.place_of_next()?;
        match self.next()? {
            Token::Name(length) if length.parse::<f64>().is_ok() => Ok(()),
            found => Err(place.error("a number as branch length", &found)),
        }
    }
}

fn is_mark(character: char) -> bool {
    "(),:;]".contains(character)
}
