package ledger

import (
	"bufio"
	"encoding/json"
	"hash/crc32"
	"os"
)

// FileJournal is a journal in a file, a line an entry.
type FileJournal struct {
	file *os.File
}

type record struct {
	Entry Entry
	Sum   uint32
}

// Append writes a line with its checksum and waits until the disk has it.
func (j *FileJournal) Append(entry Entry) error {
	raw, err := json.Marshal(record{entry, sum(entry)})
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(raw, '\n')); err != nil {
		return err
	}
	return j.file.Sync()
}

// Each visits entries in order and stops at the first line that is torn or whose checksum is wrong.
func (j *FileJournal) Each(visit func(Entry) error) error {
	lines := bufio.NewScanner(j.file)
	for lines.Scan() {
		var each record
		if json.Unmarshal(lines.Bytes(), &each) != nil || each.Sum != sum(each.Entry) {
			return nil
		}
		if err := visit(each.Entry); err != nil {
			return err
		}
	}
	return lines.Err()
}

func sum(entry Entry) uint32 {
	raw, _ := json.Marshal(entry)
	return crc32.ChecksumIEEE(raw)
}
