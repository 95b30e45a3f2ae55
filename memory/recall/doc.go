// Package recall answers "what is known that bears on this text" from all of
// memory: past events by their words, facts by the entities named.
//
// It is a function of what is stored: no model, no state, no clock. Given the
// same store and the same question it returns the same items in the same order.
//
// # Rules
//
//  1. An item is a stored text or fact with its id, date, speaker, way and score.
//     Texts are the stored bytes; only a long one is cut to passages, marked.
//  2. Words that ask and grammar are no evidence. When nothing but them matches,
//     the answer is none: memory was searched and holds nothing. A text that asks
//     for nothing that could be searched is neither items nor none.
//     The same holds when even the best text bears on a question too little, see
//     Floor; what bears on it much less than the best is not listed.
//  3. Every telling word of the question that is known has a place: of each name,
//     symbol and rare word the best text that holds it is among the items if the
//     limit allows.
//  4. Facts are those that hold now; ended ones are not returned.
//  5. The same text counts once. Questions to memory, the agent's answers to them,
//     and answers that quote what a person said are echoes and left out; other
//     questions stand back.
//  6. Of equal items the later one comes first.
//
// Safe for concurrent use.
package recall
