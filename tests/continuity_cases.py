"""Which test shows each weakness and bug of the contract of continuity repaired.

W1 to W14 are the weaknesses, B1 to B50 the bugs.  What belongs to notes, observations,
reflections, search and graph comes with those parts: its rows are added here then.
"""

W_LAST, B_LAST = 14, 50

STEPS = "test_handoff_steps.py"
SAVING = "test_vault_saving.py"
WAKING = "test_vault_waking.py"
GIT = "test_vault_git.py"
CRASHES = "test_vault_crashes.py"
PROCESSES = "test_vault_processes.py"
CLI = "test_cli_continuity.py"

CASES: dict[str, tuple[str, ...]] = {
    # An error after the handoff was saved hid its receipt.
    "W1": (f"{CLI}::test_receipt_comes_first_and_a_stage_that_fails_gives_exit_code_four",
           f"{STEPS}::test_stage_that_fails_is_told_and_the_next_one_runs"),
    # The flag was cleared before the brief was there.
    "W2": (f"{WAKING}::test_brief_that_fails_to_be_recorded_clears_nothing",
           f"{CRASHES}::test_wake_that_dies_clears_nothing"),
    # Recovery chose by name, recap by time.
    "W3": (f"{WAKING}::test_newest_handoff_is_the_last_in_the_journal_for_recovery_recap_and_list_"
           "alike", f"{WAKING}::test_touching_a_file_changes_no_order"),
    # Wake exited 1 although the brief was delivered.
    "W4": (f"{CLI}::test_wake_exits_zero_after_a_death_and_otherwise_only_when_asked",),
    # Failures of later stages were swallowed.
    "W5": (f"{CLI}::test_receipt_comes_first_and_a_stage_that_fails_gives_exit_code_four",),
    # Git staged everything, in the repository of the current folder.
    "W6": (f"{GIT}::test_commit_has_the_handoffs_file_alone_and_leaves_the_index_as_it_was",
           f"{GIT}::test_repository_is_the_vaults_and_not_that_of_the_current_folder"),
    # Nobody confirmed that a brief was taken in.
    "W7": (f"{WAKING}::test_death_is_told_again_and_again_until_its_brief_is_acknowledged",
           f"{WAKING}::test_acknowledging_twice_says_the_same"),
    # Lists were split at commas.
    "W8": (f"{SAVING}::test_items_come_back_as_they_were_said",
           f"{CLI}::test_a_session_is_handed_over_from_sleep_to_acknowledgement"),
    # A generated text took the brief's place unchecked.
    "W10": (f"{WAKING}::test_sentences_that_cite_nothing_are_dropped_and_counted",
            f"{STEPS}::test_brief_is_delivered_before_a_model_is_asked_and_its_words_stand_beside_"
            "it"),
    # The brief left things out without saying so.
    "W11": (f"{WAKING}::test_every_item_is_told_or_counted_with_the_command_that_shows_it",),
    # A damaged checkpoint hid the history.
    "W12": (f"{WAKING}::test_damaged_checkpoint_of_clawvault_is_passed_over_and_named",
            f"{WAKING}::test_checkpoint_that_is_cut_anywhere_is_kept_and_the_one_before_it_is_"
            "found"),
    # A kill in the middle left half a handoff, and a retry failed.
    "W13": (f"{CRASHES}::test_handoff_that_was_receipted_is_there_and_a_retry_gives_it_again",
            f"{PROCESSES}::test_killed_sleeper_has_lost_no_receipt_and_its_keys_go_on"),
    # Nothing asked for a next step.
    "W14": (f"{STEPS}::test_policy_refuses_a_handoff_that_says_nothing_of_how_to_go_on",
            f"{STEPS}::test_handoff_without_next_step_and_blocker_is_taken_with_a_warning"),
    # Front matter with a language tag ran as code.
    "B1": (f"{SAVING}::test_whatever_a_file_holds_it_is_kept_and_nothing_fails",),
    # A link led outside, for reading and for writing.
    "B6": (f"{SAVING}::test_no_name_and_no_link_leads_outside",),
    # An item passed for a section of the handoff.
    "B8": (f"{SAVING}::test_items_cannot_pass_for_sections_or_fields",),
    # The second handoff of a minute was refused.
    "B11": (f"{SAVING}::test_two_handoffs_of_the_same_minute_and_title_are_both_kept",
            f"{PROCESSES}::test_two_commands_of_the_same_minute_and_title_are_both_kept"),
    # Two processes at once: one handoff was overwritten.
    "B12": (f"{PROCESSES}::test_every_receipt_of_many_processes_at_once_is_there",),
    # Commands that read wrote the vault's configuration, and failed beside each other.
    "B13": (f"{CLI}::test_looking_writes_nothing",),
    # A reader that was killed left the configuration cut off.
    "B14": (f"{CLI}::test_vault_of_clawvault_is_found_from_a_folder_inside_it",),
    # Titles without ASCII letters became hidden files.
    "B17": (f"{SAVING}::test_title_becomes_a_name_inside_the_folder_whatever_it_is",),
    # Two titles became one file name.
    "B18": (f"{SAVING}::test_two_handoffs_of_the_same_minute_and_title_are_both_kept",),
    # A torn handoff was silently left out.
    "B22": (f"{SAVING}::test_whatever_a_file_holds_it_is_kept_and_nothing_fails",
            f"{WAKING}::test_note_that_cannot_be_read_is_named_and_hides_nothing"),
    # A title that is a list broke wake; a date was shown as a moment.
    "B23": (f"{WAKING}::test_note_that_cannot_be_read_is_named_and_hides_nothing",
            f"{WAKING}::test_commitment_in_an_end_state_is_over_however_it_is_written"),
    # In a read-only vault nothing could be read.
    "B24": (f"{SAVING}::test_read_only_vault_refuses_a_handoff_and_still_gives_a_brief",),
    # A checkpoint was confirmed, and then failed.
    "B25": (f"{CRASHES}::test_checkpoint_that_was_answered_is_there_and_none_is_lost",),
    # A checkpoint was confirmed before it was on disk.
    "B26": (f"{CRASHES}::test_checkpoint_that_was_answered_is_there_and_none_is_lost",),
    # A handoff was written through a link and never seen again.
    "B27": (f"{SAVING}::test_handoff_whose_file_cannot_be_made_is_receipted_and_its_file_follows",),
    # A clock that went back changed the order.
    "B28": (f"{WAKING}::test_clock_that_goes_back_changes_no_order",),
    # Lists of a day were told as projects.
    "B35": (f"{WAKING}::test_list_of_a_day_is_no_project",),
    # `completed` and `Done` counted as open.
    "B38": (f"{WAKING}::test_commitment_in_an_end_state_is_over_however_it_is_written",),
    # A wrong number of handoffs was taken.
    "B39": (f"{CLI}::test_wrong_number_of_handoffs_is_a_usage_error",),
    # A checkpoint with fields of another kind was shown as it was.
    "B41": (f"{WAKING}::test_damaged_checkpoint_of_clawvault_is_passed_over_and_named",),
    # One long summary made the brief as long.
    "B43": (f"{WAKING}::test_brief_keeps_to_its_budget_and_counts_what_does_not_fit",),
    # A dangling link stopped what came after it.
    "B50": (f"{WAKING}::test_note_that_cannot_be_read_is_named_and_hides_nothing",),
}  # fmt: skip

OF_OTHER_PARTS: dict[str, tuple[str, ...]] = {
    "notes": ("B2", "B3", "B4", "B5", "B7", "B16"),
    "observations": (
        "B9", "B10", "B15", "B20", "B20b", "B21", "B29", "B30", "B31", "B32", "B33", "B34", "B40",
        "B44", "B45", "B46", "B47",
    ),
    "archive": ("B19",),
    "search and graph": ("B36", "B37", "B48", "B49"),
    "packaging": ("B42",),
    "models": ("W9",),
}  # fmt: skip
"""Not shown yet, by the part that they belong to."""
