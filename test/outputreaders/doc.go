// Package outputreaders holds the rules by which programs that people run around nccl-tests read its output, each restated
// from the program's source that its comment names. Its tests apply them to what bench writes by nccl-tests' names.
package outputreaders
