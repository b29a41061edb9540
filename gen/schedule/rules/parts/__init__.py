"""What rules are made of: drafts, what they ask of blocks, and steps that several of them take."""
